"""Random samples of distributions other than the uniform and the normal, and of classes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np

from mixtrain import backend, checks
from mixtrain.dtype import as_dtype, bool_, float32, int32, int64, is_float
from mixtrain.ops.inputs import as_floats, rank_of, sizes_of, tensor, tensor_dtype
from mixtrain.ops.primitive import REQUIRED, configured
from mixtrain.ops.random import stream_for
from mixtrain.typing import DTypeLike, Tensor, TensorLike

# The lower bound of uniform samples whose logarithm is taken: the smallest normal float32.
_TINY = float(np.finfo(np.float32).tiny)


def _uniform(shape: int | Sequence[int] | Tensor, stream: keras.random.SeedGenerator) -> Tensor:
    """Sample float32 numbers uniformly from (0, 1)."""
    return keras.random.uniform(shape, _TINY, 1.0, dtype="float32", seed=stream)


def _gumbel(shape: int | Sequence[int] | Tensor, stream: keras.random.SeedGenerator) -> Tensor:
    return -keras.ops.log(-keras.ops.log(_uniform(shape, stream)))


def laplace(
    shape: int | Sequence[int] | Tensor, mean: TensorLike, lambda_param: TensorLike, seed: int | None = None
) -> Tensor:
    """Float32 numbers of `shape` from the Laplace distribution of `mean` and scale `lambda_param`.

    `seed` as in `normal`. Example: ``ops.laplace((2, 3), 0.0, 1.0)``.
    """
    where = "ops.laplace"
    mean, scale = (keras.ops.cast(tensor(where, value), float32) for value in (mean, lambda_param))
    sizes = np.broadcast_shapes(sizes_of(where, shape), tuple(mean.shape), tuple(scale.shape))
    return mean + scale * standard_laplace(sizes, seed)


def standard_laplace(shape: int | Sequence[int] | Tensor, seed: int | None = None) -> Tensor:
    """Sample float32 numbers of `shape` from the Laplace distribution of mean 0 and scale 1; `seed` as in `normal`.

    Example: ``ops.standard_laplace((2, 3))``.
    """
    sizes, stream = sizes_of("ops.standard_laplace", shape), stream_for("ops.standard_laplace", seed)
    return keras.ops.log(_uniform(sizes, stream)) - keras.ops.log(_uniform(sizes, stream))


def cauchy(size: int | Sequence[int] | Tensor, median: float = 0.0, sigma: float = 1.0) -> Tensor:
    """Sample numbers of shape `size` from the Cauchy distribution of `median` and scale `sigma`."""
    uniform = _uniform(sizes_of("ops.Cauchy", size), stream_for("ops.Cauchy", 0))
    return median + sigma * keras.ops.tan(np.pi * (uniform - 0.5))


def random_gamma(shape: int | Sequence[int] | Tensor, alpha: TensorLike, seed: int | None = None) -> Tensor:
    """Sample `shape` numbers from the gamma distribution of each shape parameter in `alpha` and rate 1.

    `seed` as in `normal`. Returns a tensor of shape `shape` + that of `alpha`.
    Example: ``ops.random_gamma((2,), Tensor([1.0, 3.0]))``.
    """
    where = "ops.random_gamma"
    a = as_floats(where, alpha)
    sizes = (*sizes_of(where, shape), *a.shape)
    alphas = keras.ops.cast(keras.ops.broadcast_to(a, sizes), float32)
    return keras.ops.cast(keras.random.gamma(sizes, alphas, dtype="float32", seed=stream_for(where, seed)), a.dtype)


def random_poisson(
    shape: int | Sequence[int] | Tensor, rate: TensorLike, seed: int | None = None, dtype: DTypeLike = float32
) -> Tensor:
    """Sample `shape` numbers from the Poisson distribution of each mean in `rate`, in `dtype`.

    `seed` as in `normal`. Returns a tensor of shape `shape` + that of `rate`.
    Example: ``ops.random_poisson((2,), Tensor([1.0, 3.0]))``.
    """
    where = "ops.random_poisson"
    mean = keras.ops.cast(tensor(where, rate), float32)
    sizes = (*sizes_of(where, shape), *mean.shape)
    return keras.ops.cast(backend.special.poisson(stream_for(where, seed).next(), mean, sizes), as_dtype(dtype))


def _class_weights(where: str, input: TensorLike) -> Tensor:
    x = keras.ops.cast(tensor(where, input), float32)
    if rank_of(x) not in (1, 2):
        raise checks.fail_value(where, "input must have 1 or 2 axes", tuple(x.shape), "Tensor([0.2, 0.8])")
    return x


def _sample_classes(x: Tensor, count: int, replacement: bool, stream: keras.random.SeedGenerator) -> Tensor:
    """Sample `count` classes by their weights `x` along the last axis, each at most once without replacement."""
    if not replacement:
        # The Gumbel top-k trick samples without replacement.
        return keras.ops.top_k(keras.ops.log(x) + _gumbel(keras.ops.shape(x), stream), count)[1]
    rows = keras.random.categorical(
        keras.ops.log(keras.ops.reshape(x, (-1, x.shape[-1]))), count, dtype="int32", seed=stream
    )
    return keras.ops.reshape(rows, (*x.shape[:-1], count))


def multinomial(input: TensorLike, num_samples: int, replacement: bool = True, seed: int | None = None) -> Tensor:
    """Sample `num_samples` classes by the weights in each row of `input`, which need not sum to 1; int32.

    `replacement`: whether to sample with replacement; `seed` as in `normal`. Example:
    ``ops.multinomial(Tensor([0.0, 1.0]), 3)`` is ``[1, 1, 1]``.
    """
    where = "ops.multinomial"
    x = _class_weights(where, input)
    count = checks.integer(where, "num_samples", num_samples, at_least=1)
    return keras.ops.cast(_sample_classes(x, count, replacement, stream_for(where, seed)), int32)


def multinomial_with_replacement(
    x: TensorLike, seed: int | Tensor, offset: int | Tensor, numsamples: int, replacement: bool = False
) -> Tensor:
    """Sample `numsamples` classes by the weights in each row of `x`; `seed` + `offset` is the seed of the stream.

    Always with replacement, whatever `replacement` is. Example: ``ops.multinomial_with_replacement(x, 2, 5, 2)``.
    """
    where = "ops.multinomial_with_replacement"
    classes = _sample_classes(_class_weights(where, x), int(numsamples), True, stream_for(where, seed, offset))
    return backend.to_tensor(classes, int64)


def bernoulli(input: TensorLike, p: TensorLike = 0.5, seed: int | None = None) -> Tensor:
    """1 with probability `p`, else 0, in the shape and dtype of `input`; each call with a `seed` draws the same.

    Example: ``ops.bernoulli(x)``.
    """
    return Bernoulli(-1 if seed is None else seed)(input, p)  # type: ignore[no-any-return]


def random_categorical(logits: TensorLike, num_sample: int, seed: int = 0, dtype: DTypeLike = int64) -> Tensor:
    """Sample `num_sample` classes from each row of `logits`, in `dtype`; each call with a seed draws the same ones.

    Example: ``ops.random_categorical(x, 8, seed=1)``.
    """
    return RandomCategorical(dtype)(logits, num_sample, seed)  # type: ignore[no-any-return]


def _categorical(logits: TensorLike, num_sample: int, seed: int = 0, *, dtype: DTypeLike) -> Tensor:
    where = "ops.random_categorical"
    rows = keras.ops.cast(tensor(where, logits), float32)
    classes = keras.random.categorical(rows, int(num_sample), dtype="int32", seed=stream_for(where, seed))
    return backend.to_tensor(classes, as_dtype(dtype))


def shuffle(x: TensorLike, seed: int | None = None) -> Tensor:
    """Shuffle `x` along its first axis; `seed` as in `normal`. Example: ``ops.shuffle(Tensor([1, 2, 3]))``."""
    value = tensor("ops.shuffle", x)
    return keras.random.shuffle(value, seed=stream_for("ops.shuffle", seed)) if rank_of(value) else value


def randint_like(
    input: TensorLike, low: int, high: int, seed: int | None = None, *, dtype: DTypeLike | None = None
) -> Tensor:
    """Sample ints in [`low`, `high`) of the shape and dtype of `input`, or of `dtype`; `seed` as in `randint`.

    Example: ``ops.randint_like(x, 0, 10)``.
    """
    x = tensor("ops.randint_like", input)
    values = keras.random.randint(keras.ops.shape(x), low, high, "int32", seed=stream_for("ops.randint_like", seed))
    return backend.to_tensor(values, tensor_dtype(x) if dtype is None else as_dtype(dtype))


def gumbel_softmax(logits: TensorLike, tau: float = 1.0, hard: bool = False, dim: int = -1) -> Tensor:
    """Softmax along `dim` of (`logits` + Gumbel noise) / `tau`; with `hard`, one-hot with the gradient of the softmax.

    Example: ``ops.gumbel_softmax(logits, 1.0, True)``.
    """
    where = "ops.gumbel_softmax"
    x = as_floats(where, logits)
    noise = keras.ops.cast(_gumbel(keras.ops.shape(x), stream_for(where, 0)), x.dtype)
    soft = keras.ops.softmax((x + noise) / float(tau), axis=dim)
    if not hard:
        return soft
    one_hot = keras.ops.one_hot(keras.ops.argmax(soft, axis=dim), soft.shape[dim], axis=dim, dtype=soft.dtype)
    return keras.ops.stop_gradient(one_hot - soft) + soft  # Straight-through estimator.


def rrelu(input: TensorLike, lower: float = 1.0 / 8, upper: float = 1.0 / 3) -> Tensor:
    """`input` where positive, else times a random slope from `lower` to `upper`. Example: ``ops.rrelu(x)``."""
    x = as_floats("ops.rrelu", input)
    slope = lower + (upper - lower) * _uniform(keras.ops.shape(x), stream_for("ops.rrelu", 0))
    return keras.ops.where(x >= 0, x, x * keras.ops.cast(slope, x.dtype))


def choice_with_mask(input_x: TensorLike, count: int = 256, seed: int | None = None) -> tuple[Tensor, Tensor]:
    """Sample the indices of up to `count` True elements of `input_x`; `seed` as in `normal`.

    Returns the indices, int32 of shape (count, axes), and a mask of the rows that hold one; the other rows are 0.
    Example: ``ops.choice_with_mask(Tensor([True, False]), 1)``.
    """
    where = "ops.choice_with_mask"
    x = tensor(where, input_x)
    if x.dtype != bool_ or is_float(tensor_dtype(x)):
        raise checks.fail_type(where, "input_x must hold bools", tensor_dtype(x).name, "x > 0")
    flat, size = keras.ops.reshape(x, (-1,)), int(np.prod(x.shape))
    # Scores of True elements are above 1, those of False ones below: True comes first, in random order.
    scores = keras.ops.cast(flat, float32) + _uniform((size,), stream_for(where, seed))
    positions = keras.ops.top_k(scores, min(count, size))[1]
    mask = keras.ops.take(flat, positions)
    indices = keras.ops.stack(keras.ops.unravel_index(positions, tuple(x.shape)), axis=-1)
    indices = keras.ops.where(mask[:, None], keras.ops.cast(indices, int32), 0)
    missing = count - min(count, size)
    return keras.ops.pad(indices, [(0, missing), (0, 0)]), keras.ops.pad(mask, [(0, missing)])


def _sampler(name: str, probability_of: Callable[[Tensor, int], Tensor]) -> Callable[..., Any]:
    """Return a function that samples classes, each with its probability among a number of them.

    It returns the samples and the expected counts of the true and of the sampled classes.
    """
    where = f"ops.{name}"

    def sample(
        true_classes: TensorLike, num_sampled: int, unique: bool, range_max: int, seed: int,
        remove_accidental_hits: bool = False, **_: Any
    ) -> tuple[Tensor, Tensor, Tensor]:
        stream, true = stream_for(where, seed), tensor(where, true_classes)
        weights = probability_of(keras.ops.arange(range_max, dtype="float32"), range_max)
        true_p = probability_of(keras.ops.cast(true, float32), range_max)
        if not unique:
            sampled = keras.random.categorical(keras.ops.log(weights)[None], num_sampled, dtype="int32", seed=stream)[0]
            sampled_p = keras.ops.take(weights, sampled)
            return keras.ops.cast(sampled, true.dtype), true_p * num_sampled, sampled_p * num_sampled
        log_weights, left_out = keras.ops.log(weights), 0.0
        if remove_accidental_hits:
            hits = keras.ops.max(keras.ops.one_hot(keras.ops.reshape(true, (-1,)), range_max), axis=0)
            # As in MindSpore, where too few classes would be left, none is left out.
            hits = hits * keras.ops.cast(num_sampled + keras.ops.sum(hits) <= range_max, hits.dtype)
            log_weights, left_out = log_weights - hits * 1e9, keras.ops.sum(hits * weights)
        sampled = keras.ops.top_k(log_weights + _gumbel((range_max,), stream), num_sampled)[1]
        sampled_p = keras.ops.take(weights, sampled)
        # The number of tries with replacement that see so many classes: between two new ones it is geometric.
        seen = left_out + keras.ops.cumsum(sampled_p) - sampled_p
        waits = keras.ops.log(_uniform((num_sampled,), stream)) / keras.ops.log(seen)
        tries = keras.ops.sum(keras.ops.maximum(keras.ops.ceil(waits), 1))
        true_count, sampled_count = (
            keras.ops.where(tries == num_sampled, p * num_sampled, -keras.ops.expm1(tries * keras.ops.log1p(-p)))
            for p in (true_p, sampled_p)
        )
        return keras.ops.cast(sampled, true.dtype), true_count, sampled_count

    return sample


def log_uniform_candidate_sampler(
    true_classes: TensorLike, num_true: int = 1, num_sampled: int = 5, unique: bool = True, range_max: int = 5,
    seed: int = 0,
) -> tuple[Tensor, Tensor, Tensor]:
    """Sample `num_sampled` of `range_max` classes from a log-uniform (Zipfian) distribution, as of words by frequency.

    `true_classes` has shape (rows, `num_true`); with `unique` each class is sampled at most once. Each call with a
    `seed` draws the same classes; 0 is the stream of the operation. Returns the sampled classes, and the expected
    counts of each true and of each sampled class.

    Example: ``ops.log_uniform_candidate_sampler(Tensor([[1], [3]]), 1, 2, True, 5)``.
    """
    sampler = LogUniformCandidateSampler(num_true, num_sampled, unique, range_max, seed)
    return sampler(true_classes)  # type: ignore[no-any-return]


def uniform_candidate_sampler(
    true_classes: TensorLike, num_true: int, num_sampled: int, unique: bool, range_max: int, seed: int = 0,
    remove_accidental_hits: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    """`log_uniform_candidate_sampler` of equal probabilities.

    `true_classes`, `num_true`, `num_sampled`, `unique`, `range_max`, `seed`: As there. `remove_accidental_hits`:
    Whether, with `unique`, no true class is sampled where enough others are left.
    """
    settings = num_true, num_sampled, unique, range_max, seed, remove_accidental_hits
    return UniformCandidateSampler(*settings)(true_classes)  # type: ignore[no-any-return]


def _with_two_seeds(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Return a function of one seed as a function of the two seeds that primitives have."""
    return lambda *args, seed, seed2, **settings: function(*args, seed=seed * 65537 + seed2, **settings)


def _bernoulli(x: TensorLike, p: TensorLike, seed: int, offset: int) -> Tensor:
    value = tensor("ops.bernoulli", x)
    uniform = _uniform(keras.ops.shape(value), stream_for("ops.bernoulli", max(seed, 0), offset))
    return keras.ops.cast(uniform < keras.ops.cast(as_floats("ops.bernoulli", p), float32), value.dtype)


def _multinomial(x: Tensor, num_samples: int, seed: int, seed2: int, dtype: DTypeLike) -> Tensor:
    return backend.to_tensor(multinomial(x, num_samples, True, seed * 65537 + seed2), as_dtype(dtype))


def _log_uniform(classes: Tensor, size: int) -> Tensor:
    return keras.ops.log((classes + 2) / (classes + 1)) / math.log(size + 1)


_TWO_SEEDS = {"seed": 0, "seed2": 0}
Bernoulli = configured("Bernoulli", _bernoulli, seed=-1, offset=0)
Cauchy = configured("Cauchy", cauchy, size=REQUIRED, median=0.0, sigma=1.0)
LogUniformCandidateSampler = configured(
    "LogUniformCandidateSampler", _sampler("log_uniform_candidate_sampler", _log_uniform),
    num_true=1, num_sampled=5, unique=True, range_max=5, seed=0,
)
Multinomial = configured("Multinomial", _multinomial, **_TWO_SEEDS, dtype=int32)
MultinomialWithReplacement = configured(
    "MultinomialWithReplacement", multinomial_with_replacement, numsamples=REQUIRED, replacement=False,
)
RandomCategorical = configured("RandomCategorical", _categorical, dtype=int64)
RandomChoiceWithMask = configured("RandomChoiceWithMask", _with_two_seeds(choice_with_mask), count=256, **_TWO_SEEDS)
RandomGamma = configured("RandomGamma", _with_two_seeds(random_gamma), **_TWO_SEEDS)
RandomPoisson = configured("RandomPoisson", _with_two_seeds(random_poisson), **_TWO_SEEDS, dtype=int64)
RandomShuffle = configured("RandomShuffle", _with_two_seeds(shuffle), **_TWO_SEEDS)
StandardLaplace = configured("StandardLaplace", _with_two_seeds(standard_laplace), **_TWO_SEEDS)
UniformCandidateSampler = configured(
    "UniformCandidateSampler", _sampler("uniform_candidate_sampler", lambda classes, size: classes * 0 + 1 / size),
    num_true=REQUIRED, num_sampled=REQUIRED, unique=REQUIRED, range_max=REQUIRED, seed=0, remove_accidental_hits=False,
)

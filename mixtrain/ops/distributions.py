"""Samples from distributions other than the uniform and the normal one, and samples of classes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import keras
import numpy as np

from mixtrain import backend, checks
from mixtrain.dtype import as_dtype, bool_, float32, int32, int64, is_float
from mixtrain.ops.inputs import as_floats, format_of, rank_of, sizes_of, tensor
from mixtrain.ops.primitive import REQUIRED, configured
from mixtrain.seed import stream_of

# The least number that `uniform` draws where its logarithm is taken.
_LEAST = float(np.finfo(np.float32).tiny)


def _stream(where: str, seed: Any, seed2: Any = 0) -> Any:
    own = sum(int(np.asarray(backend.to_numpy(one))) if backend.is_tensor(one) else int(one or 0) for one in (
        seed, seed2))
    return stream_of(where.rpartition(".")[2], checks.integer(where, "seed", own, at_least=0))


def _unit(shape: Any, stream: Any) -> Any:
    """Numbers from (0, 1)."""
    return keras.random.uniform(shape, _LEAST, 1.0, dtype="float32", seed=stream)


def _gumbel(shape: Any, stream: Any) -> Any:
    return -keras.ops.log(-keras.ops.log(_unit(shape, stream)))


def laplace(shape: Any, mean: Any, lambda_param: Any, seed: int | None = None) -> Any:
    """Draw float32 numbers of `shape`, Laplace's around `mean` with scale `lambda_param`; `seed` as in `normal`.

    Example: ``ops.laplace((2, 3), 0.0, 1.0)``. Source: MindSpore, `mindspore.ops.laplace`.
    """
    where = "ops.laplace"
    middle, scale = (keras.ops.cast(tensor(where, one), float32) for one in (mean, lambda_param))
    sizes = np.broadcast_shapes(sizes_of(where, shape), tuple(middle.shape), tuple(scale.shape))
    return middle + scale * standard_laplace(sizes, seed)


def standard_laplace(shape: Any, seed: int | None = None) -> Any:
    """Draw float32 numbers of `shape` from the Laplace distribution of mean 0 and scale 1; `seed` as in `normal`.

    Example: ``ops.standard_laplace((2, 3))``. Source: MindSpore, `mindspore.ops.standard_laplace`.
    """
    sizes, stream = sizes_of("ops.standard_laplace", shape), _stream("ops.standard_laplace", seed)
    return keras.ops.log(_unit(sizes, stream)) - keras.ops.log(_unit(sizes, stream))


def cauchy(size: Any, median: float = 0.0, sigma: float = 1.0) -> Any:
    """Draw numbers of shape `size` from the Cauchy distribution of `median` and width `sigma`."""
    drawn = _unit(sizes_of("ops.Cauchy", size), _stream("ops.Cauchy", 0))
    return median + sigma * keras.ops.tan(np.pi * (drawn - 0.5))


def random_gamma(shape: Any, alpha: Any, seed: int | None = None) -> Any:
    """Draw `shape` numbers from the gamma distribution of each shape parameter in `alpha` and rate 1.

    `seed` as in `normal`. Returns a tensor of shape `shape` + that of `alpha`.
    Example: ``ops.random_gamma((2,), Tensor([1.0, 3.0]))``. Source: MindSpore, `mindspore.ops.random_gamma`.
    """
    where = "ops.random_gamma"
    a = as_floats(where, alpha)
    sizes = (*sizes_of(where, shape), *a.shape)
    single = keras.ops.cast(keras.ops.broadcast_to(a, sizes), float32)
    return keras.ops.cast(keras.random.gamma(sizes, single, dtype="float32", seed=_stream(where, seed)), a.dtype)


def random_poisson(shape: Any, rate: Any, seed: int | None = None, dtype: Any = float32) -> Any:
    """Draw `shape` numbers from the Poisson distribution of each mean in `rate`, in `dtype`.

    `seed` as in `normal`. Returns a tensor of shape `shape` + that of `rate`.
    Example: ``ops.random_poisson((2,), Tensor([1.0, 3.0]))``. Source: MindSpore, `mindspore.ops.random_poisson`.
    """
    where = "ops.random_poisson"
    mean = keras.ops.cast(tensor(where, rate), float32)
    sizes = (*sizes_of(where, shape), *mean.shape)
    return keras.ops.cast(backend.row_random.poisson(_stream(where, seed).next(), mean, sizes), as_dtype(dtype))


def _probabilities(where: str, input: Any) -> Any:
    x = keras.ops.cast(tensor(where, input), float32)
    if rank_of(x) not in (1, 2):
        raise checks.fail_value(where, "input must have 1 or 2 axes", tuple(x.shape), "Tensor([0.2, 0.8])")
    return x


def _classes(x: Any, count: int, replacement: bool, stream: Any) -> Any:
    """Draw `count` classes by their weights `x` along the last axis, each at most once without replacement."""
    if not replacement:
        # The largest of logarithms plus Gumbel noise are classes drawn one after the other.
        return keras.ops.top_k(keras.ops.log(x) + _gumbel(keras.ops.shape(x), stream), count)[1]
    rows = keras.random.categorical(
        keras.ops.log(keras.ops.reshape(x, (-1, x.shape[-1]))), count, dtype="int32", seed=stream
    )
    return keras.ops.reshape(rows, (*x.shape[:-1], count))


def multinomial(input: Any, num_samples: int, replacement: bool = True, seed: int | None = None) -> Any:
    """Draw classes by the weights in each row of `input`.

    Args:
        input: Weights of the classes, of one or two axes; they need not sum to 1.
        num_samples: How many classes are drawn of each row.
        replacement: Whether a class may be drawn again.
        seed: Its own stream of random numbers; None for the operation's.

    Returns:
        int32 tensor of shape (num_samples,) or (rows, num_samples).

    Example:
        >>> import mixtrain.ops as ops
        >>> import mixtrain
        >>> print(ops.multinomial(mixtrain.Tensor([0.0, 1.0]), 3))
        [1 1 1]

    Source: MindSpore, `mindspore.ops.multinomial`.
    """
    where = "ops.multinomial"
    x = _probabilities(where, input)
    count = checks.integer(where, "num_samples", num_samples, at_least=1)
    return keras.ops.cast(_classes(x, count, replacement, _stream(where, seed)), int32)


def multinomial_with_replacement(x: Any, seed: Any, offset: Any, numsamples: int, replacement: bool = False) -> Any:
    """Draw `numsamples` classes by the weights in each row of `x`, with replacement; `seed` and `offset` give a stream.

    Example: ``ops.multinomial_with_replacement(x, 2, 5, 2)``.
    Source: MindSpore, `mindspore.ops.multinomial_with_replacement`.
    """
    where = "ops.multinomial_with_replacement"
    found = _classes(_probabilities(where, x), int(numsamples), True, _stream(where, seed, offset))
    return backend.to_tensor(found, int64)


def random_categorical(logits: Any, num_sample: int, seed: int = 0, dtype: Any = int64) -> Any:
    """Draw `num_sample` classes of each row of `logits`, in `dtype`; `seed` gives a stream of its own.

    Example: ``ops.random_categorical(logits, 8)``. Source: MindSpore, `mindspore.ops.random_categorical`.
    """
    where = "ops.random_categorical"
    rows = keras.ops.cast(tensor(where, logits), float32)
    drawn = keras.random.categorical(rows, int(num_sample), dtype="int32", seed=_stream(where, seed))
    return backend.to_tensor(drawn, as_dtype(dtype))


def shuffle(x: Any, seed: int | None = None) -> Any:
    """Return `x` with its first axis in random order; `seed` as in `normal`.

    Example: ``ops.shuffle(Tensor([1, 2, 3]))``. Source: MindSpore, `mindspore.ops.shuffle`.
    """
    value = tensor("ops.shuffle", x)
    return keras.random.shuffle(value, seed=_stream("ops.shuffle", seed)) if rank_of(value) else value


def randint_like(input: Any, low: int, high: int, seed: int | None = None, *, dtype: Any = None) -> Any:
    """Draw ints from `low` to `high` - 1 in the shape of `input` and its format, or `dtype`; `seed` as in `randint`.

    Example: ``ops.randint_like(x, 0, 10)``. Source: MindSpore, `mindspore.ops.randint_like`.
    """
    x = tensor("ops.randint_like", input)
    drawn = keras.random.randint(keras.ops.shape(x), low, high, "int32", seed=_stream("ops.randint_like", seed))
    return backend.to_tensor(drawn, format_of(x) if dtype is None else as_dtype(dtype))


def gumbel_softmax(logits: Any, tau: float = 1.0, hard: bool = False, dim: int = -1) -> Any:
    """Return the softmax along `dim` of (`logits` + Gumbel noise) / `tau`; with `hard`, one-hot with its gradient.

    Example: ``ops.gumbel_softmax(logits, 1.0, True)``. Source: MindSpore, `mindspore.ops.gumbel_softmax`.
    """
    where = "ops.gumbel_softmax"
    x = as_floats(where, logits)
    noise = keras.ops.cast(_gumbel(keras.ops.shape(x), _stream(where, 0)), x.dtype)
    soft = keras.ops.softmax((x + noise) / float(tau), axis=dim)
    if not hard:
        return soft
    chosen = keras.ops.one_hot(keras.ops.argmax(soft, axis=dim), soft.shape[dim], axis=dim, dtype=soft.dtype)
    return keras.ops.stop_gradient(chosen - soft) + soft


def rrelu(input: Any, lower: float = 1.0 / 8, upper: float = 1.0 / 3) -> Any:
    """Return `input` where it is positive, else times a number drawn uniformly from `lower` to `upper`.

    Example: ``ops.rrelu(x)``. Source: MindSpore, `mindspore.ops.rrelu`.
    """
    x = as_floats("ops.rrelu", input)
    slope = lower + (upper - lower) * _unit(keras.ops.shape(x), _stream("ops.rrelu", 0))
    return keras.ops.where(x >= 0, x, x * keras.ops.cast(slope, x.dtype))


def choice_with_mask(input_x: Any, count: int = 256, seed: int | None = None) -> tuple[Any, Any]:
    """Draw up to `count` places of the True elements of `input_x`; `seed` as in `normal`.

    Returns:
        The places, int32 of shape (count, axes), and which of the rows hold one; the other rows are 0.

    Example: ``ops.choice_with_mask(Tensor([True, False]), 1)``.
    Source: MindSpore, `mindspore.ops.choice_with_mask`.
    """
    where = "ops.choice_with_mask"
    x = tensor(where, input_x)
    if x.dtype != bool_ or is_float(format_of(x)):
        raise checks.fail_type(where, "input_x must hold bools", format_of(x).name, "x > 0")
    marks, size = keras.ops.reshape(x, (-1,)), int(np.prod(x.shape))
    scores = keras.ops.cast(marks, float32) + _unit((size,), _stream(where, seed))
    chosen = keras.ops.top_k(scores, min(count, size))[1]
    held = keras.ops.take(marks, chosen)
    places = keras.ops.stack(keras.ops.unravel_index(chosen, tuple(x.shape)), axis=-1)
    places = keras.ops.where(held[:, None], keras.ops.cast(places, int32), 0)
    missing = count - min(count, size)
    return keras.ops.pad(places, [(0, missing), (0, 0)]), keras.ops.pad(held, [(0, missing)])


def _candidates(
    where: str, probability: Callable[[Any], Any], true_classes: Any, num_sampled: int, unique: bool, range_max: int,
    seed: int,
) -> tuple[Any, Any, Any]:
    """Draw classes below `range_max`; return them and how often each true and each drawn class was to be expected."""
    stream, true = _stream(where, seed), tensor(where, true_classes)
    log_weights = keras.ops.log(probability(keras.ops.arange(range_max, dtype="float32")))
    if unique:
        drawn = keras.ops.top_k(log_weights + _gumbel((range_max,), stream), num_sampled)[1]
    else:
        drawn = keras.random.categorical(log_weights[None], num_sampled, dtype="int32", seed=stream)[0]
    of_true, of_drawn = (probability(keras.ops.cast(classes, float32)) for classes in (true, drawn))
    tries: Any = num_sampled
    if unique:
        # Draws with replacement until so many classes were seen: between two of them, a geometric number.
        waits = keras.ops.log(_unit((num_sampled - 1,), stream)) / keras.ops.log(keras.ops.cumsum(of_drawn)[:-1])
        tries = 1 + keras.ops.sum(keras.ops.maximum(keras.ops.ceil(waits), 1))
    of_true, of_drawn = (
        -keras.ops.expm1(tries * keras.ops.log1p(-one)) if unique else one * tries for one in (of_true, of_drawn)
    )
    return keras.ops.cast(drawn, true.dtype), of_true, of_drawn


def log_uniform_candidate_sampler(
    true_classes: Any, num_true: int = 1, num_sampled: int = 5, unique: bool = True, range_max: int = 5, seed: int = 0
) -> tuple[Any, Any, Any]:
    """Draw classes, those with small numbers more often, as words by their rank.

    Args:
        true_classes: Classes of each row, of shape (rows, num_true).
        num_true: How many a row has.
        num_sampled: How many classes are drawn.
        unique: Whether each is drawn at most once.
        range_max: How many classes there are.
        seed: Its own stream of random numbers; 0 for the operation's.

    Returns:
        The classes drawn, and how often each true and each drawn class was to be expected.

    Example: ``ops.log_uniform_candidate_sampler(Tensor([[1], [3]]), 1, 2, True, 5)``.
    Source: MindSpore, `mindspore.ops.log_uniform_candidate_sampler`.
    """
    return _candidates(
        "ops.log_uniform_candidate_sampler",
        lambda classes: keras.ops.log((classes + 2) / (classes + 1)) / math.log(range_max + 1),
        true_classes, num_sampled, unique, range_max, seed,
    )


def uniform_candidate_sampler(
    true_classes: Any, num_true: int, num_sampled: int, unique: bool, range_max: int, seed: int = 0,
    remove_accidental_hits: bool = False,
) -> tuple[Any, Any, Any]:
    """Do what `log_uniform_candidate_sampler` does, with all classes alike; MindSpore has it by this name too.

    Source: MindSpore, `mindspore.ops.UniformCandidateSampler`.
    """
    return _candidates(
        "ops.uniform_candidate_sampler", lambda classes: keras.ops.ones_like(classes) / range_max, true_classes,
        num_sampled, unique, range_max, seed,
    )


def _of_seeds(function: Any) -> Any:
    """A function of a seed as one of the two that primitives have."""
    return lambda *args, seed, seed2, **named: function(*args, seed=seed * 65537 + seed2, **named)


def _bernoulli(x: Any, p: Any, seed: int, offset: int) -> Any:
    value = tensor("ops.Bernoulli", x)
    drawn = _unit(keras.ops.shape(value), _stream("ops.Bernoulli", max(seed, 0), offset))
    return keras.ops.cast(drawn < keras.ops.cast(tensor("ops.Bernoulli", p), float32), value.dtype)


def _multinomial(x: Any, num_samples: int, seed: int, seed2: int, dtype: Any) -> Any:
    return backend.to_tensor(multinomial(x, num_samples, True, seed * 65537 + seed2), as_dtype(dtype))


_TWO_SEEDS = {"seed": 0, "seed2": 0}
Bernoulli = configured("Bernoulli", _bernoulli, seed=-1, offset=0)
Cauchy = configured("Cauchy", cauchy, size=REQUIRED, median=0.0, sigma=1.0)
LogUniformCandidateSampler = configured(
    "LogUniformCandidateSampler", log_uniform_candidate_sampler, num_true=1, num_sampled=5, unique=True, range_max=5,
    seed=0,
)
Multinomial = configured("Multinomial", _multinomial, **_TWO_SEEDS, dtype=int32)
MultinomialWithReplacement = configured(
    "MultinomialWithReplacement", multinomial_with_replacement, numsamples=REQUIRED, replacement=False,
)
RandomCategorical = configured("RandomCategorical", random_categorical, dtype=int64)
RandomChoiceWithMask = configured("RandomChoiceWithMask", _of_seeds(choice_with_mask), count=256, **_TWO_SEEDS)
RandomGamma = configured("RandomGamma", _of_seeds(random_gamma), **_TWO_SEEDS)
RandomPoisson = configured("RandomPoisson", _of_seeds(random_poisson), **_TWO_SEEDS, dtype=int64)
RandomShuffle = configured("RandomShuffle", _of_seeds(shuffle), **_TWO_SEEDS)
StandardLaplace = configured("StandardLaplace", _of_seeds(standard_laplace), **_TWO_SEEDS)
UniformCandidateSampler = configured(
    "UniformCandidateSampler", uniform_candidate_sampler, num_true=REQUIRED, num_sampled=REQUIRED, unique=REQUIRED,
    range_max=REQUIRED, seed=0, remove_accidental_hits=False,
)

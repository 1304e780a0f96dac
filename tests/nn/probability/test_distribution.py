"""Samples, seeds, parameters, subclasses and errors of distributions."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
import mixtrain.nn.probability as msp
import mixtrain.nn.probability.distribution as msd
from mixtrain import Parameter, Tensor, nn, ops
from mixtrain.nn.probability import bijector, distribution

# Parameters, and the mean and standard deviation of samples; None where there is none.
MOMENTS: dict[str, tuple[list[Any], float | None, float | None]] = {
    "Normal": ([0.5, 2.0], 0.5, 2.0),
    "LogNormal": ([0.1, 0.5], np.exp(0.225), np.exp(0.225) * np.sqrt(np.exp(0.25) - 1)),
    "Cauchy": ([0.5, 2.0], None, None),
    "Gumbel": ([0.5, 2.0], 0.5 + 2 * np.euler_gamma, 2 * np.pi / np.sqrt(6)),
    "Logistic": ([0.5, 2.0], 0.5, 2 * np.pi / np.sqrt(3)),
    "Uniform": ([-1.0, 2.0], 0.5, np.sqrt(9 / 12)),
    "Exponential": ([0.5], 2.0, 2.0),
    "Gamma": ([2.5, 1.5], 2.5 / 1.5, np.sqrt(2.5) / 1.5),
    "Beta": ([2.0, 3.0], 0.4, 0.2),
    "Bernoulli": ([0.3], 0.3, np.sqrt(0.21)),
    "Categorical": ([[0.2, 0.3, 0.5]], 1.3, np.sqrt(0.61)),
    "Geometric": ([0.4], 1.5, np.sqrt(0.6) / 0.4),
    "Poisson": ([2.5], 2.5, np.sqrt(2.5)),
}


def values(x: Any) -> np.ndarray:
    return np.asarray(x.asnumpy())


def made(name: str, **settings: Any) -> Any:
    return getattr(msd, name)(*(np.array(each, np.float32) for each in MOMENTS[name][0]), **settings)


@pytest.mark.parametrize("name", MOMENTS)
def test_samples_have_the_moments_shape_and_dtype_of_the_distribution(name: str) -> None:
    _, mean, sd = MOMENTS[name]
    one = made(name, seed=7)
    drawn = values(one.sample((40, 500)))
    assert drawn.shape == (40, 500) and drawn.dtype == one.dtype
    assert tuple(one.sample().shape) == () and made(name, dtype=mixtrain.float16).sample((2,)).dtype == mixtrain.float16
    if mean is None:
        assert abs(np.median(drawn) - 0.5) < 0.1
    else:
        assert abs(drawn.mean() - mean) < 0.04 * sd
        assert abs(drawn.std() / sd - 1) < 0.04


@pytest.mark.parametrize("compiled", [False, True])
def test_two_distributions_of_one_seed_draw_the_same_stream(compiled: bool) -> None:
    one, other = made("Normal", seed=5), made("Normal", seed=5)
    first, second = (mixtrain.jit(each.sample) if compiled else each.sample for each in (one, other))
    draws = [values(first((3,))) for _ in range(3)]
    assert all(np.array_equal(values(second((3,))), draw) for draw in draws)
    assert len({tuple(draw) for draw in draws}) == 3
    assert not np.array_equal(values(made("Normal", seed=6).sample((3,))), draws[0])


def test_without_a_seed_samples_follow_that_of_the_process() -> None:
    drawn = []
    for _ in range(2):
        mixtrain.set_seed(3)
        drawn.append(values(made("Gamma").sample((3,))))
    assert np.array_equal(*drawn)


@pytest.mark.parametrize("compiled", [False, True])
def test_gradients_go_through_samples(compiled: bool) -> None:
    scale_of = {"Normal": msd.Normal(seed=2), "Uniform": msd.Uniform(seed=2), "Logistic": msd.Logistic(seed=2)}
    for each in scale_of.values():
        gradient = mixtrain.grad(lambda a, b, d=each: (d.sample((500,), a, b)).mean(), (0, 1))
        run = mixtrain.jit(gradient) if compiled else gradient
        low, high = map(float, run(Tensor(0.5), Tensor(2.0)))
        assert low == pytest.approx(0.5 if each is scale_of["Uniform"] else 1, abs=0.1)
        assert high == pytest.approx(0.5 if each is scale_of["Uniform"] else 0, abs=0.2)
    transformed = bijector.Exp()(msd.Normal(seed=2))
    (slope,) = [mixtrain.grad(lambda m: transformed.sample((2000,), m, Tensor(0.1)).mean())(Tensor(0.3))]
    assert float(slope) == pytest.approx(np.exp(0.305), rel=0.03)


class Scaled(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        mean, sd = (Parameter(Tensor([value]), name=name) for name, value in (("m", 0.5), ("s", 2.0)))
        self.normal = msd.Normal(mean, sd)

    def construct(self, x: Any) -> Any:
        return -self.normal("log_prob", x).sum()


def test_parameters_of_a_distribution_are_trained_and_named_as_in_mindspore() -> None:
    network = Scaled()
    assert list(network.parameters_dict()) == ["normal._mean_value", "normal._sd_value"]
    _, gradients = mixtrain.value_and_grad(network, None, network.trainable_params())(Tensor([1.0]))
    np.testing.assert_allclose([float(each[0]) for each in gradients], [-0.125, 0.46875])
    step = nn.TrainOneStepCell(network, nn.SGD(network.trainable_params(), 0.1))
    losses = [float(step(Tensor([3.0, 2.5, 3.5]))) for _ in range(40)]
    assert losses[-1] < losses[0] - 2
    assert float(network.normal.mean()[0]) == pytest.approx(3.0, abs=0.1)


def test_a_distribution_prints_as_in_mindspore() -> None:
    assert repr(msd.Normal(0.0, 1.0)) == "Normal(mean = 0.0, standard deviation = 1.0)"
    assert repr(msd.Cauchy([0.0], [1.0])) == "Cauchy(batch_shape = (1,))"
    assert repr(msd.LogNormal(0.0, 1.0)).splitlines() == [
        "LogNormal(", "  loc = 0.0, scale = 1.0", "  (_bijector): Exp(exp)",
        "  (_distribution): Normal(mean = 0.0, standard deviation = 1.0)", ")",
    ]


def test_attributes_are_those_of_mindspore() -> None:
    normal = msd.Normal([[1.0], [2.0]], [3.0, 4.0, 5.0], seed=3, name="n")
    assert (normal.batch_shape, normal.broadcast_shape, normal.is_scalar_batch) == ((2, 3), (2, 3), False)
    assert (normal.seed, normal.name, normal.dtype) == (3, "n", mixtrain.float32)
    assert msd.Normal(1.0).batch_shape is None and msd.Normal(1.0, 2.0).is_scalar_batch
    assert msd.Categorical([[0.5, 0.5]]).broadcast_shape == (1,)
    assert msd.Gamma(Tensor([1.0]), Tensor([2.0])).rate.asnumpy() == [2.0]
    mean, sd = normal.get_dist_args(sd=Tensor([1.0]))
    assert tuple(mean.shape) == (2, 1) and sd.asnumpy() == [1.0] and normal("get_dist_type") == "Normal"
    assert msd.Bernoulli(0.5).get_dist_args(probs1=Tensor([0.25]))[0].asnumpy() == [0.25]


class Waiting(msd.Distribution):
    """A distribution of a user, as MindSpore's are written."""

    def __init__(self, rate: Any = None, seed: Any = None, dtype: Any = mixtrain.float32, name: str = "W") -> None:
        param = dict(locals())
        param["param_dict"] = {"rate": rate}
        super().__init__(seed, dtype, name, param)
        self._rate = self._add_parameter(rate, "rate")

    def _log_cdf(self, value: Any, rate: Any = None) -> Any:
        value = self.cast_base(self._check_value(value, "value"), self.dtype)
        return self.log_base(1.0 - self.exp_base(-1.0 * self._check_param_type(rate) * value))

    def _var(self, rate: Any = None) -> Any:
        return 1.0 / self.sq_base(self._check_param_type(rate))

    def _sample(self, shape: Any = (), rate: Any = None) -> Any:
        rate = self._check_param_type(rate)
        uniform = ops.uniform(self.checktuple(shape, "shape") + rate.shape, Tensor(1e-6), Tensor(1.0), self.seed)
        return -self.log_base(uniform) / rate


@pytest.mark.parametrize("compiled", [False, True])
def test_functions_of_a_users_distribution_follow_from_those_that_it_has(compiled: bool) -> None:
    waiting = Waiting(Tensor([2.0]))
    for name, expected in {"cdf": 1 - np.exp(-2), "survival_function": np.exp(-2), "log_survival": -2.0}.items():
        run = mixtrain.jit(getattr(waiting, name)) if compiled else getattr(waiting, name)
        np.testing.assert_allclose(values(run(Tensor([1.0]))), [expected], rtol=1e-5)
    assert values(waiting.sd()) == [0.5] and tuple(waiting.sample((3,)).shape) == (3, 1)
    assert values(waiting("var", Tensor([4.0]))) == [1 / 16]
    with pytest.raises(NotImplementedError, match="define _prob"):
        waiting.prob(Tensor([1.0]))
    with pytest.raises(NotImplementedError):
        waiting("kl_loss", "Waiting", Tensor([1.0]))


def test_a_subclass_may_override_one_formula() -> None:
    class Shifted(msd.Normal):
        def __init__(self) -> None:
            super().__init__(0.0, 1.0)

        def _log_prob(self, value: Any, mean: Any = None, sd: Any = None) -> Any:
            return super()._log_prob(value - 1.0, mean, sd)

    assert values(Shifted().prob(Tensor(1.0))) == pytest.approx(0.39894, abs=1e-5)
    assert Shifted().get_dist_type() == "Normal"


def test_backend_tensors_give_backend_tensors() -> None:
    x = keras.ops.ones(2)
    assert isinstance(msd.Normal(0.0, 1.0).log_prob(x), type(x)) and isinstance(msd.Normal(0.0, 1.0)("cdf", x), type(x))


def test_a_distribution_may_be_made_in_construct_of_what_is_computed() -> None:
    def loss(mean: Any) -> Any:
        return msd.Normal(mean, ops.exp(mean)).log_prob(Tensor([1.0])).sum()

    eager = float(mixtrain.grad(loss)(Tensor([0.5]))[0])
    assert eager == pytest.approx(float(mixtrain.jit(mixtrain.grad(loss))(Tensor([0.5]))[0]), rel=1e-5)
    assert eager == pytest.approx(-1 + 0.5 * np.exp(-1.0) + 0.25 * np.exp(-1.0), rel=1e-5)


def test_poisson_counts_up_to_the_whole_number_below() -> None:
    poisson = msd.Poisson([0.5])
    np.testing.assert_allclose(values(poisson.cdf(Tensor([0.5]))), [np.exp(-0.5)], rtol=1e-5)


def test_values_outside_of_the_classes_have_no_probability() -> None:
    log_prob = values(msd.Categorical([0.25, 0.75]).log_prob(Tensor([-0.5, 0.5, 2.0, -1.0])))
    np.testing.assert_allclose(log_prob, [np.log(0.25), np.log(0.25), np.nan, np.nan], rtol=1e-6)


NORMAL = msd.Normal(0.0, 1.0)
ERRORS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "dtype": (lambda: msd.Normal(0.0, 1.0, dtype=mixtrain.int32), TypeError, "dtype must be one of"),
    "scale": (lambda: msd.Normal(0.0, -1.0), ValueError, "Normal: sd must be greater than 0; got -1.0. Write sd=1.0"),
    "bool": (lambda: msd.Normal(0.0, True), TypeError, "sd must be a Tensor"),
    "tuple": (lambda: msd.Normal((0.0,), 1.0), TypeError, "mean must be a Tensor"),
    "dtypes": (lambda: msd.Normal(np.float16([1]), np.float32([1])), TypeError, "sd must have the dtype of mean"),
    "shapes": (lambda: msd.Normal(np.ones(2), np.ones(3)), ValueError, "must broadcast"),
    "seed": (lambda: msd.Normal(seed=-1), ValueError, "seed must be at least 0"),
    "name": (lambda: msd.Normal(name=1), TypeError, "name must be a str"),
    "unknown argument": (lambda: msd.Normal(loc=1.0), TypeError, "its arguments are mean, sd"),
    "order": (lambda: msd.Uniform(2.0, 1.0), ValueError, "high - low must be greater than 0"),
    "probability": (lambda: msd.Bernoulli([0.5, 1.5]), ValueError, "greater than 0 and less than 1; got 1.5"),
    "sum": (lambda: msd.Categorical([0.5, 0.6]), ValueError, "of the sum 1"),
    "no axis": (lambda: msd.Categorical(0.5), ValueError, "axis of classes"),
    "number": (lambda: msd.Gamma(1.0, 2.0), TypeError, "concentration must not be a number"),
    "missing": (lambda: msd.Normal().log_prob(Tensor([1.0])), TypeError, "mean, which was not given at construction"),
    "value": (lambda: NORMAL.log_prob(1.0), TypeError, "value must be a Tensor"),
    "parameter": (lambda: NORMAL.log_prob(Tensor(1.0), 1.0), TypeError, "mean must be a Tensor"),
    "shape": (lambda: NORMAL.sample(3), TypeError, "shape must be a tuple"),
    "family": (lambda: NORMAL.kl_loss("Gamma", Tensor(1.0), Tensor(1.0)), ValueError, "dist must be one of Normal"),
    "second": (lambda: NORMAL.kl_loss("Normal", 1.0, 1.0), TypeError, "mean_b must be a Tensor"),
    "undefined": (lambda: msd.Cauchy(0.0, 1.0).mean(), ValueError, "undefined"),
    "nonlinear": (lambda: bijector.Exp()(NORMAL).mean(), ValueError, "constant Jacobian"),
    "function": (lambda: NORMAL("density", Tensor(1.0)), NotImplementedError, "Write one of prob, log_prob"),
    "transformed ints": (lambda: bijector.Exp()(msd.Bernoulli(0.5)), TypeError, "float dtype"),
    "no bijector": (lambda: msd.TransformedDistribution(1, NORMAL), TypeError, "bijector must be a Bijector"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_have_mindspores_types_and_say_what_to_write(name: str) -> None:
    call, kind, text = ERRORS[name]
    with pytest.raises(kind, match="Write ") as raised:
        call()
    assert text in str(raised.value)


def test_modules_are_imported_as_in_mindspore() -> None:
    assert msp.distribution is distribution is msd and nn.probability is msp
    module = importlib.import_module("mixtrain.nn.probability.distribution.log_normal")
    assert module.LogNormal is msd.LogNormal


def test_a_log_normal_has_a_finite_gradient_below_zero() -> None:
    gradient = mixtrain.grad(lambda x: msp.distribution.LogNormal(0.0, 1.0).cdf(x).sum())(mixtrain.Tensor([-1.0, 0.5]))
    np.testing.assert_allclose(gradient.asnumpy(), [0.0, 0.6274961], rtol=1e-5)

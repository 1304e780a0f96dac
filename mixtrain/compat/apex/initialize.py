"""apex's words: `initialize` makes a network and its optimizer train by a level, `scale_loss` scales their loss."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, Final

import keras

from mixtrain import checks
from mixtrain.autocast.scope.autocast import autocast
from mixtrain.compat.apex.amp_optimizer import AmpOptimizer, checked_driver, trained_by
from mixtrain.compat.apex.opt_level import DYNAMIC, Options, OptLevel, options_table, resolve_options
from mixtrain.compat.apex.scale_range import scale_in_range
from mixtrain.dtype import DType, as_dtype, float32
from mixtrain.loss_scale.grad_scaler import GradScaler
from mixtrain.network.interpose import Forward, interpose
from mixtrain.network.walk import tree_of
from mixtrain.optim.optimizer import Optimizer
from mixtrain.precision.apply import apply_plan
from mixtrain.precision.cast import cast_floats
from mixtrain.precision.master_weights import keep_in_half, master_value
from mixtrain.precision.plan import PrecisionPlan
from mixtrain.precision.planner import plan_precision
from mixtrain.trace_version import network_changed

_WHERE: Final = "amp.initialize"
_ATTRIBUTE: Final = "_mixtrain_initialized"


def initialize(
    models: Any,
    optimizers: Any = None,
    enabled: bool = True,
    opt_level: OptLevel = "O1",
    cast_model_type: DType | str | None = None,
    patch_torch_functions: bool | None = None,
    keep_batchnorm_fp32: bool | str | None = None,
    master_weights: bool | None = None,
    loss_scale: float | str | None = None,
    cast_model_outputs: DType | str | None = None,
    num_losses: int = 1,
    verbosity: int = 1,
    min_loss_scale: float | None = None,
    max_loss_scale: float = 2.0**24,
) -> Any:
    """Make a network and its optimizer train as one of apex's levels says; call it once, after loading weights.

    O0 trains in float32. O1 runs the network's calls under `autocast`. O2 keeps parameters in half, computes all but
    normalization in half, and updates float32 copies of the parameters. O3 keeps no copies. Outputs are float32.

    Args:
        models: A Cell or built Keras model, or a list of them.
        optimizers: A mixtrain or Keras optimizer, or a list of them; None for none.
        enabled: False to leave the network as it is; a loop's lines stay the same.
        opt_level: "O0", "O1", "O2" or "O3".
        cast_model_type: The half format, float16 or bfloat16; None for float16.
        patch_torch_functions: Whether operators are cast one by one; it follows from the level.
        keep_batchnorm_fp32: At O2 and O3, whether normalization keeps float32 inputs and outputs.
        master_weights: At O2 and O3, whether float32 copies of the parameters are updated.
        loss_scale: "dynamic", or a number for a constant loss scale; None for the level's: dynamic at O1 and O2.
        cast_model_outputs: float32, which outputs are in any case.
        num_losses: 1; several losses of one optimizer are summed, or scaled with `amp.GradScaler`.
        verbosity: 0 prints nothing; above, the options in force.
        min_loss_scale: What a dynamic scale does not fall below; None for a number next to 0.
        max_loss_scale: What a dynamic scale does not rise above.

    Returns:
        The network and an `AmpOptimizer`, each in a list where a list was given; without `optimizers` the network.

    Raises:
        TypeError: An argument of the wrong kind.
        ValueError: An unknown level, options that contradict it, or a network that was initialized before.

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> net = nn.Dense(2, 1)
        >>> net, optimizer = initialize(net, nn.SGD(net.trainable_params(), 0.1), opt_level="O2", loss_scale=128)
        opt_level             : O2
        cast_model_type       : float16
        patch_torch_functions : False
        keep_batchnorm_fp32   : True
        master_weights        : True
        loss_scale            : 128.0  (given; O2 has dynamic)
        >>> net.weight.dtype, next(master_params(optimizer)).dtype.name
        (mixtrain.float16, 'float32')

    Source: NVIDIA apex, `apex.amp.initialize`.
    """
    options = resolve_options(
        opt_level, cast_model_type=cast_model_type, patch_torch_functions=patch_torch_functions,
        keep_batchnorm_fp32=keep_batchnorm_fp32, master_weights=master_weights, loss_scale=loss_scale,
    )
    _check_rest(enabled, cast_model_outputs, num_losses, verbosity)
    networks, listed = _listed(models), _listed([] if optimizers is None else optimizers)
    for network in networks:
        _check_network(network)
    for optimizer in listed:
        checked_driver(optimizer)
    if len(listed) not in (0, len(networks)) and not all(isinstance(one, Optimizer) for one in listed):
        raise checks.fail_value(
            _WHERE, "there must be one Keras optimizer for each network", f"{len(listed)} for {len(networks)}",
            "as many optimizers as networks, in the same order",
        )
    scalers = [_scaler(options, min_loss_scale, max_loss_scale) if enabled else None for _ in listed]
    # What can be checked was checked; only now a network is changed.
    if enabled:
        if verbosity:
            print(options_table(options))
        for network in networks:
            _put_in_force(network, options)
    paired = networks if len(networks) == len(listed) else [None] * len(listed)
    made = [
        AmpOptimizer(optimizer, trained_by(optimizer, network), scaler)
        for optimizer, network, scaler in zip(listed, paired, scalers, strict=True)
    ]
    kept = networks if isinstance(models, (list, tuple)) else networks[0]
    if optimizers is None:
        return kept
    return kept, made if isinstance(optimizers, (list, tuple)) else made[0]


@contextlib.contextmanager
def scale_loss(loss: Any, optimizers: Any) -> Iterator[Any]:
    """Give the scaled loss, whose gradients the optimizer's `step` or `apply_gradients` takes.

    Open it where the loss is computed: inside a function that is differentiated, or under a gradient tape.

    Args:
        loss: A float scalar.
        optimizers: The optimizer that `initialize` returned.

    Returns:
        What ``with`` gives: the loss, float32, times the scale.

    Raises:
        TypeError: `optimizers` is no `AmpOptimizer`.
        ValueError: A `Model` scales its loss.

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> net = nn.Dense(1, 1, weight_init="zeros", has_bias=False)
        >>> net, optimizer = initialize(net, nn.SGD(net.trainable_params(), 0.5), opt_level="O2", verbosity=0)
        >>> def forward(x, y):
        ...     loss = nn.MSELoss()(net(x), y)
        ...     with scale_loss(loss, optimizer) as scaled_loss:
        ...         return scaled_loss
        >>> gradient_of = mixtrain.value_and_grad(forward, None, optimizer.parameters)
        >>> loss, gradients = gradient_of(mixtrain.Tensor([[1.0]]), mixtrain.Tensor([[2.0]]))
        >>> float(loss), bool(optimizer.step(gradients)), net.weight.asnumpy().tolist()
        (262144.0, False, [[0.0]])
        >>> optimizer.scaler.get_scale()
        32768.0

    Source: NVIDIA apex, `apex.amp.scale_loss`.
    """
    listed = _listed(optimizers)
    if len(listed) != 1 or not isinstance(listed[0], AmpOptimizer):
        raise checks.fail_type(
            "amp.scale_loss", "optimizers must be one that amp.initialize returned", optimizers,
            "a loss for each optimizer, or amp.GradScaler for a loss that several share",
        )
    optimizer = listed[0]
    if optimizer.scaler is None:
        yield loss
        return
    optimizer.claim("amp.scale_loss")
    yield optimizer.scaler.scale(loss)


def master_params(optimizer: AmpOptimizer) -> Iterator[Any]:
    """Yield the value of each parameter that an optimizer updates, a float32 tensor where the network keeps half.

    Args:
        optimizer: What `initialize` returned.

    Raises:
        TypeError: It is something else.

    Example: ``norms = [ops.norm(value) for value in amp.master_params(optimizer)]``.

    Source: NVIDIA apex, `apex.amp.master_params`.
    """
    checks.instance("amp.master_params", "optimizer", optimizer, AmpOptimizer, "what amp.initialize returned")
    for parameter in optimizer.parameters:
        yield master_value(parameter)


def initialized_plan(network: Any) -> PrecisionPlan | None:
    """Return the plan that `initialize` put in force on a network; None for another network."""
    return vars(network).get(_ATTRIBUTE)


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _check_rest(enabled: Any, cast_model_outputs: Any, num_losses: Any, verbosity: Any) -> None:
    checks.boolean(_WHERE, "enabled", enabled)
    checks.integer(_WHERE, "verbosity", verbosity, at_least=0, example=1)
    if cast_model_outputs is not None and as_dtype(cast_model_outputs) != float32:
        raise checks.fail_value(
            _WHERE, "outputs are float32, so that the loss is",
            f"cast_model_outputs={checks.shown(cast_model_outputs)}", "ops.cast(outputs, dtype) after the call",
        )
    if checks.integer(_WHERE, "num_losses", num_losses, at_least=1) != 1:
        raise checks.fail_value(
            _WHERE, "an optimizer has one scaler", f"num_losses={num_losses}",
            "the sum of the losses, or amp.GradScaler with a loop of your own",
        )


def _check_network(network: Any) -> None:
    layers = [node.layer for node in tree_of(network).walk()]
    if not all(layer.built for layer in layers if isinstance(layer, keras.Layer)):
        raise checks.fail_value(
            _WHERE, "a Keras network must have its variables", "one that is not built", "network.build(input_shape)"
        )
    if initialized_plan(network) is not None:
        raise checks.fail_value(
            _WHERE, "a network is initialized once", type(network).__name__, "one call with all that is to hold"
        )


def _put_in_force(network: Any, options: Options) -> None:
    """Let a network compute, and keep its parameters, as the options say."""
    if options.casts_layers:
        plan = plan_precision(
            network, options.opt_level, cast_model_type=options.cast_model_type,  # type: ignore[arg-type]
            keep_batchnorm_fp32=options.keep_batchnorm_fp32,
        )
    else:
        plan = plan_precision(network, "O0")
    apply_plan(network, plan)
    if options.casts_layers:
        keep_in_half(network, plan, masters=options.master_weights)
    if options.patch_torch_functions:
        interpose(network, lambda forward: _under_autocast(forward, options.cast_model_type))
    object.__setattr__(network, _ATTRIBUTE, plan)
    network_changed(network)


def _under_autocast(forward: Forward, half: DType) -> Forward:
    def call(*args: Any, **kwargs: Any) -> Any:
        with autocast(half):
            outputs = forward(*args, **kwargs)
        return cast_floats(outputs, float32)

    return call


def _scaler(options: Options, smallest: float | None, largest: float) -> GradScaler | None:
    """Return a new scaler; None where the loss is not scaled."""
    if options.loss_scale == 1.0:
        return None
    scaler = GradScaler()
    fixed = None if options.loss_scale == DYNAMIC else float(options.loss_scale)
    scaler.state = scale_in_range(_WHERE, fixed, smallest, largest)
    return scaler

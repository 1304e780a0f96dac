"""`initialize` and `scale_loss` of apex: train a network and its optimizer at an optimization level."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, Final

from mixtrain import checks
from mixtrain.compat.apex.amp_optimizer import AmpOptimizer, checked_driver, trained_by
from mixtrain.compat.apex.opt_level import DYNAMIC, Options, OptLevel, options_table, resolve_options
from mixtrain.compat.apex.scale_range import scale_in_range
from mixtrain.compat.pytorch.autocast import autocast
from mixtrain.compat.pytorch.grad_scaler import GradScaler
from mixtrain.dtype import DType, as_dtype, float32
from mixtrain.network.interpose import Forward, interpose
from mixtrain.network.marks import DECIDED
from mixtrain.network.walk import all_built
from mixtrain.optim.optimizer import Optimizer
from mixtrain.precision.apply import apply_plan
from mixtrain.precision.cast import cast_floats
from mixtrain.precision.float8_layers import refuse_delayed
from mixtrain.precision.half_storage import keep_in_half
from mixtrain.precision.master_weights import master_value
from mixtrain.precision.planner import plan_precision
from mixtrain.trace_version import network_changed
from mixtrain.typing import Network, Tree, Variable

_WHERE: Final = "amp.initialize"


def initialize(
    models: Network | Sequence[Network], optimizers: Optimizer | Sequence[Optimizer] | None = None,
    enabled: bool = True, opt_level: OptLevel = "O1", cast_model_type: DType | str | None = None,
    patch_torch_functions: bool | None = None, keep_batchnorm_fp32: bool | str | None = None,
    master_weights: bool | None = None, loss_scale: float | str | None = None,
    cast_model_outputs: DType | str | None = None, num_losses: int = 1, verbosity: int = 1,
    min_loss_scale: float | None = None, max_loss_scale: float = 2.0**24,
) -> Any:
    """Prepare a network and its optimizer for one of apex's levels; call it once, after loading weights.

    O0 trains in float32. O1 runs the network under `autocast`. O2 stores parameters in half, computes all but
    normalization in half, and updates float32 copies of the parameters. O3 has no copies. Outputs are float32.

    Args:
        models: A Cell or built Keras model, or a list of them.
        optimizers: A mixtrain or Keras optimizer, or a list of them; None for none.
        enabled: False to leave the network unchanged, with the same training loop.
        opt_level: "O0", "O1", "O2" or "O3".
        cast_model_type: The half dtype, float16 or bfloat16; None for float16.
        patch_torch_functions: Whether operators are cast one by one; it follows from the level.
        keep_batchnorm_fp32: At O2 and O3, whether normalization keeps float32 inputs and outputs.
        master_weights: At O2 and O3, whether float32 copies of the parameters are updated.
        loss_scale: "dynamic", or a number for a constant loss scale; None for the level's: dynamic at O1 and O2.
        cast_model_outputs: float32, the dtype of outputs in any case.
        num_losses: 1; sum several losses of one optimizer, or scale them with `amp.GradScaler`.
        verbosity: 0 prints nothing; a larger value prints the options.
        min_loss_scale: Minimum of a dynamic scale; None for the smallest normal number.
        max_loss_scale: Maximum of a dynamic scale.

    Returns:
        The network and an `AmpOptimizer`, each in a list if a list was passed; without `optimizers`, the network.

    Raises:
        TypeError: An argument has the wrong type.
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
    _check_settings(enabled, cast_model_outputs, num_losses, verbosity)
    networks, inner_optimizers = _as_list(models), _as_list([] if optimizers is None else optimizers)
    for network in networks:
        _check_network(network)
    for optimizer in inner_optimizers:
        checked_driver(optimizer)
    count = len(inner_optimizers)
    if count not in (0, len(networks)) and not all(isinstance(item, Optimizer) for item in inner_optimizers):
        raise checks.fail_value(
            _WHERE, "there must be one Keras optimizer for each network", f"{count} for {len(networks)}",
            "as many optimizers as networks, in the same order",
        )
    scalers = [_scaler(options, min_loss_scale, max_loss_scale) if enabled else None for _ in inner_optimizers]
    # Every check is above, so that an error leaves all networks unchanged.
    if enabled:
        if verbosity:
            print(options_table(options))
        for network in networks:
            _apply_options(network, options)
    paired = networks if len(networks) == count else [None] * count
    amp_optimizers = [
        AmpOptimizer(optimizer, trained_by(optimizer, network), scaler)
        for optimizer, network, scaler in zip(inner_optimizers, paired, scalers, strict=True)
    ]
    result = networks if isinstance(models, (list, tuple)) else networks[0]
    if optimizers is None:
        return result
    return result, amp_optimizers if isinstance(optimizers, (list, tuple)) else amp_optimizers[0]


@contextlib.contextmanager
def scale_loss(loss: Tree, optimizers: Optimizer | Sequence[Optimizer]) -> Iterator[Tree]:
    """Scale the loss; pass its gradients to the optimizer's `step` or `apply_gradients`.

    Enter it where the loss is computed: inside a differentiated function, or under a gradient tape.

    Args:
        loss: A float scalar.
        optimizers: The optimizer that `initialize` returned.

    Returns:
        A context manager for the loss times the scale, in float32.

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
    items = _as_list(optimizers)
    if len(items) != 1 or not isinstance(items[0], AmpOptimizer):
        raise checks.fail_type(
            "amp.scale_loss", "optimizers must be one that amp.initialize returned", optimizers,
            "a loss for each optimizer, or amp.GradScaler for a loss that several share",
        )
    optimizer = items[0]
    if optimizer.scaler is None:
        yield loss
        return
    optimizer.claim("amp.scale_loss")
    yield optimizer.scaler.scale(loss)


def master_params(optimizer: AmpOptimizer) -> Iterator[Variable]:
    """Yield the value of each parameter that an optimizer updates, in float32 where the network stores half.

    Args:
        optimizer: The optimizer that `initialize` returned.

    Raises:
        TypeError: It is something else.

    Example: ``norms = [ops.norm(value) for value in amp.master_params(optimizer)]``.

    Source: NVIDIA apex, `apex.amp.master_params`.
    """
    checks.instance("amp.master_params", "optimizer", optimizer, AmpOptimizer, "what amp.initialize returned")
    for parameter in optimizer.parameters:
        yield master_value(parameter)


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _check_settings(enabled: Any, cast_model_outputs: Any, num_losses: Any, verbosity: Any) -> None:
    checks.boolean(_WHERE, "enabled", enabled)
    checks.integer(_WHERE, "verbosity", verbosity, at_least=0, example=1)
    if cast_model_outputs is not None and as_dtype(cast_model_outputs) != float32:
        raise checks.fail_value(
            _WHERE, "outputs are float32, so that the loss is",
            f"cast_model_outputs={checks.short_repr(cast_model_outputs)}", "ops.cast(outputs, dtype) after the call",
        )
    if checks.integer(_WHERE, "num_losses", num_losses, at_least=1) != 1:
        raise checks.fail_value(
            _WHERE, "an optimizer has one scaler", f"num_losses={num_losses}",
            "the sum of the losses, or amp.GradScaler with a loop of your own",
        )


def _check_network(network: Any) -> None:
    if not all_built(network):
        raise checks.fail_value(
            _WHERE, "a Keras network must have its variables", "one that is not built", "network.build(input_shape)"
        )
    if DECIDED.of(network) is not None:
        raise checks.fail_value(
            _WHERE, "a network is initialized once", type(network).__name__, "one call with all that is to hold"
        )


def _apply_options(network: Network, options: Options) -> None:
    """Apply the options to the computation and the parameters of a network."""
    if options.casts_layers:
        plan = plan_precision(
            network, options.opt_level, cast_model_type=options.cast_model_type,  # type: ignore[arg-type]
            keep_batchnorm_fp32=options.keep_batchnorm_fp32,
        )
    else:
        plan = plan_precision(network, "O0")
    apply_plan(network, refuse_delayed(_WHERE, plan))
    if options.casts_layers:
        keep_in_half(network, plan, masters=options.master_weights)
    if options.patch_torch_functions:
        interpose(network, lambda forward: _under_autocast(forward, options.cast_model_type))
    DECIDED.put(network, plan)
    network_changed(network)


def _under_autocast(forward: Forward, half: DType) -> Forward:
    def call(*args: Any, **kwargs: Any) -> Any:
        with autocast(half):
            outputs = forward(*args, **kwargs)
        return cast_floats(outputs, float32)

    return call


def _scaler(options: Options, minimum: float | None, maximum: float) -> GradScaler | None:
    """Return a new scaler; None if the loss is not scaled."""
    if options.loss_scale == 1.0:
        return None
    scaler = GradScaler()
    constant = None if options.loss_scale == DYNAMIC else float(options.loss_scale)
    scaler.state = scale_in_range(_WHERE, constant, minimum, maximum)
    return scaler

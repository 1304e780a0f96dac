"""MindSpore's module paths for imports, and errors that suggest the nearest name for a missing one."""

from __future__ import annotations

import importlib
import pathlib
import sys
import types
from collections.abc import Iterable, Mapping
from typing import Any, Final

from mixtrain import checks
from mixtrain.compat.mindspore.refused_names import REFUSED, stub
from mixtrain.lazy_names import find_with, serve_names

_INNER: Final = "mixtrain.compat.mindspore.inner_names"
_RUNTIME: Final = "mixtrain.compat.mindspore.runtime"
_DERIVATIVES: Final = ("mixtrain.ops.derivative_primitives", "mixtrain.ops.window_derivatives")
_PRIMITIVES: Final = ("mixtrain.ops.module_primitives", "mixtrain.ops.sparse_primitives")
_THOR: Final = "mixtrain.compat.mindspore.train.thor_model"
_DATASET_HELPER: Final = "mixtrain.compat.mindspore.train.dataset_helper"
_CUSTOM_LOOP: Final = "mixtrain.compat.mindspore.train.custom_loop"
_EXT: Final = "mixtrain.mint.nn.ext"
_EXT_FUNCTIONS: Final = "mixtrain.mint.ext_functions"
_CHECKPOINT_FILES: Final = "mixtrain.compat.mindspore.train.checkpoint_files"

# Modules that MindSpore has, or had, and where their names are here. A module that exists here, too, keeps its own
# names and adds these.
HOMES: Final[Mapping[str, tuple[str, ...]]] = types.MappingProxyType({
    "mixtrain._c_expression.security": (_INNER,),
    "mixtrain._checkparam": ("mixtrain.compat.mindspore.argument_checks",),
    # The last has settings of MindSpore's compiler, which a script may write; nothing reads them.
    **dict.fromkeys((f"mixtrain._extends{path}" for path in ("", ".parse", ".parse.compile_config")), (_INNER,)),
    "mixtrain.amp": (_INNER,),
    "mixtrain.boost": ("mixtrain.compat.mindspore.grad_accumulation",),
    "mixtrain.boost.grad_accumulation": ("mixtrain.compat.mindspore.grad_accumulation",),
    "mixtrain.common": ("mixtrain", "mixtrain.common.initializer"),
    "mixtrain.common.api": ("mixtrain", _INNER),
    **dict.fromkeys((f"mixtrain.{path}" for path in (
        "common.jit_config", "common.lazy_inline", "common.no_inline", "common.recompute", "graph.api",
        "graph.jit_config", "graph.mutable", "graph.no_inline", "graph.recompute",
    )), ("mixtrain",)),
    "mixtrain.common.dtype": ("mixtrain.dtype", _INNER),
    "mixtrain.common.np_dtype": ("ml_dtypes",),
    "mixtrain.common.parameter": ("mixtrain", _INNER),
    "mixtrain.common.seed": ("mixtrain.seed", _INNER),
    "mixtrain.common.tensor": ("mixtrain",),
    **dict.fromkeys(
        (f"mixtrain.communication.{path}" for path in ("management", "_comm_helper")), ("mixtrain.communication",)
    ),
    "mixtrain.dataset": (_INNER,),
    **dict.fromkeys(("mixtrain.dataset.callback", "mixtrain.dataset.core"), ("mixtrain.dataset",)),
    "mixtrain.dataset.core.validator_helpers": (_INNER,),
    "mixtrain.dataset.engine": ("mixtrain.dataset",),
    **dict.fromkeys((f"mixtrain.dataset.engine.{name}" for name in (
        "datasets", "datasets_standard_format", "datasets_text", "datasets_user_defined", "datasets_vision",
    )), ("mixtrain.dataset", _INNER)),
    "mixtrain.dataset.engine.samplers": ("mixtrain.dataset",),
    "mixtrain.dataset.text.transforms": ("mixtrain.dataset.text",),
    "mixtrain.dataset.text.utils": ("mixtrain.dataset.text",),
    "mixtrain.dataset.transforms.c_transforms": ("mixtrain.dataset.transforms",),
    "mixtrain.dataset.transforms.py_transforms": ("mixtrain.dataset.transforms",),
    "mixtrain.dataset.transforms.transforms": ("mixtrain.dataset.transforms",),
    "mixtrain.dataset.transforms.vision": ("mixtrain.dataset.vision",),
    "mixtrain.dataset.transforms.vision.c_transforms": (
        "mixtrain.dataset.vision.c_transforms", "mixtrain.dataset.vision",
    ),
    "mixtrain.dataset.transforms.vision.py_transforms": (
        "mixtrain.dataset.vision.py_transforms", "mixtrain.dataset.vision",
    ),
    "mixtrain.dataset.vision.c_transforms": ("mixtrain.dataset.vision",),
    "mixtrain.dataset.vision.py_transforms": ("mixtrain.dataset.vision", "mixtrain.dataset.transforms"),
    "mixtrain.dataset.vision.transforms": ("mixtrain.dataset.vision",),
    **dict.fromkeys((f"mixtrain.common.{name}" for name in ("mutable", "sparse_tensor")), ("mixtrain", _INNER)),
    "mixtrain.dataset.vision.utils": ("mixtrain.dataset.vision",),
    "mixtrain.graph": ("mixtrain",),
    "mixtrain.mint.distributed.distributed": ("mixtrain.mint.distributed",),
    **dict.fromkeys((f"mixtrain.mint.nn.layer{path}" for path in (
        "", ".activation", ".basic", ".conv", ".normalization", ".padding", ".pooling",
    )), ("mixtrain.mint.nn",)),
    **dict.fromkeys((f"mixtrain.mint.optim.{name}" for name in ("adam", "adamw", "fused_adamw", "sgd")),
                    ("mixtrain.mint.optim",)),
    "mixtrain.multiprocessing": ("multiprocessing",),
    "mixtrain.graph.lazy_inline": ("mixtrain",),
    **dict.fromkeys((f"mixtrain.nn.{path}" for path in (
        "cell", "dynamic_lr", "grad", "layer", "layer.basic", "layer.combined", "layer.image", "layer.math",
        "layer.normalization", "layer.pooling", "layer.rnns", "layer.timedistributed", "learning_rate_schedule",
        "loss", "loss.loss", "sparse", "optim", "optim.ada_grad", "optim.adadelta", "optim.adafactor", "optim.adam",
        "optim.adamax", "optim.asgd", "optim.ftrl", "optim.lamb", "optim.lars", "optim.lazyadam", "optim.momentum",
        "optim.optimizer", "optim.proximal_ada_grad", "optim.rmsprop", "optim.rprop", "optim.sgd", "optim.thor",
        "utils", "wrap", "wrap.grad_reducer", "wrap.loss_scale",
    )), ("mixtrain.nn", _EXT)),
    **dict.fromkeys(("mixtrain.nn", "mixtrain.nn.layer.activation", "mixtrain.nn.layer.embedding"), (_EXT,)),
    **dict.fromkeys((f"mixtrain.nn.probability.distribution.{name}" for name in (
        "bernoulli", "beta", "categorical", "cauchy", "exponential", "gamma", "geometric", "gumbel", "half_normal",
        "laplace", "log_normal", "logistic", "normal", "poisson", "student_t", "transformed_distribution", "uniform",
    )), ("mixtrain.nn.probability.distribution",)),
    **dict.fromkeys((f"mixtrain.nn.probability.bijector.{name}" for name in (
        "exp", "gumbel_cdf", "invert", "power_transform", "scalar_affine", "softplus",
    )), ("mixtrain.nn.probability.bijector",)),
    **dict.fromkeys((f"mixtrain.numpy.{path}" for path in ("array_creations", "array_ops", "logic_ops", "math_ops")),
                    ("mixtrain.numpy",)),
    "mixtrain.nn.layer.rnn_cells": ("mixtrain.nn", "mixtrain.nn.layer.recurrent_cell"),
    "mixtrain.nn.wrap.cell_wrapper": ("mixtrain.nn", _INNER),
    "mixtrain.ops": ("mixtrain.ops.unlisted", *_PRIMITIVES),
    **dict.fromkeys((f"mixtrain.ops.{path}" for path in ("_primitive_cache", "vm_impl_registry")),
                    ("mixtrain.ops", _INNER)),
    "mixtrain.device_context.cpu.op_tuning": (_INNER,),
    **dict.fromkeys((f"mixtrain.ops.{path}" for path in (
        "communication", "composite", "composite.base",
        "composite.multitype_ops", "composite.multitype_ops.zeros_like_impl", "function",
        "function.array_func", "function.clip_func", "function.grad",
        "function.linalg_func", "function.math_func", "function.random_func", "functional",
        "primitive",
    )), ("mixtrain.ops", "mixtrain.ops.unlisted", _EXT_FUNCTIONS)),
    **dict.fromkeys((f"mixtrain.ops.auto_generate{part}" for part in ("", ".gen_ops_def", ".gen_ops_prim")), (
        "mixtrain.ops", "mixtrain.ops.unlisted", *_DERIVATIVES, *_PRIMITIVES,
        _EXT_FUNCTIONS,
    )),
    # Where MindSpore has a function and a primitive of one name, as `identity`, these have the primitive.
    **dict.fromkeys((f"mixtrain.ops.operations{path}" for path in (
        "", "._inner_ops", ".array_ops", ".comm_ops", ".control_ops", ".debug_ops", ".image_ops", ".inner_ops",
        ".linalg_ops", ".manually_defined", ".manually_defined.ops_def", ".math_ops", ".nn_ops", ".other_ops",
        ".random_ops", ".sparse_ops", ".spectral_ops", "._sequence_ops",
    )), ("mixtrain.ops.unlisted", "mixtrain.ops", *_PRIMITIVES)),
    "mixtrain.ops.function.nn_func": (
        "mixtrain.ops", "mixtrain.ops.unlisted", _EXT_FUNCTIONS, "mixtrain.nn.layer.attention",
    ),
    "mixtrain.ops.operations._grad_ops": _DERIVATIVES,
    "mixtrain.nn.metrics": ("mixtrain.nn",),
    "mixtrain.nn.metrics.metric": ("mixtrain.nn.metrics",),
    "mixtrain": (_INNER, _RUNTIME),
    **dict.fromkeys(
        (f"mixtrain.hal{path}" for path in ("", ".device", ".event", ".memory", ".stream")), (_RUNTIME,)
    ),
    **dict.fromkeys(
        ("mixtrain.parallel._auto_parallel_context", "mixtrain.parallel._utils"),
        ("mixtrain.compat.mindspore.parallel_utils",),
    ),
    "mixtrain.parallel.nn": ("mixtrain.nn.wrap.micro_batches",),
    **dict.fromkeys((f"mixtrain.parallel{path}" for path in ("", ".algo_parameter_config", ".shard")),
                    ("mixtrain.compat.mindspore.sharding",)),
    **dict.fromkeys(("mixtrain.scipy.ops_wrapper", "mixtrain.scipy.utils"), ("mixtrain.scipy.ops",)),
    "mixtrain.runtime": ("mixtrain.common.accepted", _RUNTIME),
    **dict.fromkeys((f"mixtrain.runtime.{path}" for path in ("event", "memory", "stream")), (_RUNTIME,)),
    "mixtrain.train": ("mixtrain.amp", "mixtrain.serialization", _THOR, _DATASET_HELPER),
    "mixtrain.train.amp": ("mixtrain.amp",),
    "mixtrain.train.callback": ("mixtrain.train", _CUSTOM_LOOP, _CHECKPOINT_FILES),
    **dict.fromkeys(
        (f"mixtrain.train.callback._{name}" for name in (
            "backup_and_restore", "callback", "checkpoint", "early_stop", "history", "lambda_callback",
            "loss_monitor", "lr_scheduler_callback", "on_request_exit", "reduce_lr_on_plateau", "summary_collector",
            "time_monitor",
        )), ("mixtrain.train.callback", _CUSTOM_LOOP, _CHECKPOINT_FILES),
    ),
    "mixtrain.train.loss_scale_manager": ("mixtrain.amp",),
    "mixtrain.train.metrics": ("mixtrain.nn.metrics",),
    "mixtrain.train.metrics.metric": ("mixtrain.nn.metrics",),
    "mixtrain.train.model": ("mixtrain.train", "mixtrain.context"),
    "mixtrain.train.serialization": ("mixtrain", _INNER),
    **dict.fromkeys((f"mixtrain.train.{path}" for path in (
        "data_sink", "dataset_helper", "summary", "summary.summary_record", "train_thor.dataset_helper",
    )), ("mixtrain.train", _DATASET_HELPER)),
    **dict.fromkeys(
        ("mixtrain.train.train_thor", "mixtrain.train.train_thor.convert_utils"), (_THOR, "mixtrain.train")
    ),
    "mixtrain.utils": ("mixtrain",),
    "mixtrain.utils.dlpack": ("mixtrain",),
    # Where mixtrain had them first, by which pickles name them.
    "mixtrain.loss_scale.grad_scaler": ("mixtrain.compat.pytorch.grad_scaler",),
    "mixtrain.loss_scale.scaler": ("mixtrain.amp.loss_scaler",),
    "mixtrain.train.summary_record": ("mixtrain.compat.mindspore.train",),
    **{f"mixtrain.train.callback.{name}": (f"mixtrain.compat.mindspore.train.{name}",) for name in (
        "custom_loop", "early_stopping", "history", "lambda_callback", "learning_rate_scheduler", "on_request_exit",
        "reduce_lr_on_plateau", "summary_collector", "time_monitor",
    )},
})

_ROOT: Final = pathlib.Path(__file__).parents[3]


def install_homes() -> None:
    """Make the modules of `HOMES` importable, and suggest the nearest name for one that a public module lacks.

    They import the modules with their names when one is used.
    """
    for path in sorted({*HOMES, *REFUSED}):
        if path in sys.modules or _is_file(path):
            continue  # Serves its names itself.
        doc = f"The names of {' and '.join(HOMES[path])}, where MindSpore has them." if path in HOMES else (
            "MindSpore names that are not available here; using one says what to write instead."
        )
        module = types.ModuleType(path, doc)
        module.__path__ = []  # Makes it a package, so that modules below it can be imported.
        sys.modules[path] = module
        serve_names(path)
    find_with(_find)


def _is_file(path: str) -> bool:
    """Whether a module of mixtrain is a file or a folder."""
    place = _ROOT / path.replace(".", "/")
    return place.with_suffix(".py").is_file() or place.is_dir()


def public_names(module: types.ModuleType) -> list[str]:
    """Return the public names of a module."""
    names: Iterable[str] = vars(module).get("__all__") or (name for name in vars(module) if not name.startswith("_"))
    return list(names)


def _find(module: types.ModuleType, name: str) -> Any:
    """Return a name that a module does not define: a module below, or a name of its homes.

    Raises: AttributeError if there is none; it suggests the nearest name.
    """
    path = module.__name__
    below = f"{path}.{name}"
    if _is_file(below):
        return importlib.import_module(below)
    homes = [importlib.import_module(home) for home in HOMES.get(path, ())]
    if name == "__all__" and homes:
        return sorted({other for home in homes for other in public_names(home) if not other.startswith("__")})
    # A function that is named as its module is in MindSpore, as `mutable` is, comes before the module.
    if not name.startswith("__"):
        for home in homes:
            if name in vars(home) or name in public_names(home):
                return getattr(home, name)
    # A name that is refused comes before it, but where all others of a module are refused.
    if below in sys.modules and (stub(path, name) is None or below in HOMES and name not in REFUSED[path]):
        return sys.modules[below]
    if not name.startswith("__"):
        for home in (module, *homes):
            refused = stub(home.__name__, name)
            if refused is not None:
                return refused
    names = {other for home in (module, *homes) for other in public_names(home)}
    matches = [] if name.startswith("_") else checks.nearest(name, sorted(names), cutoff=0.6)
    advice = f"Write {path}.{matches[0]}" if matches else "docs/from_mindspore.md lists what there is"
    raise AttributeError(f"module {path!r} has no attribute {name!r}. {advice}.", name=name, obj=module)

"""MindSpore's module paths for imports, and errors that suggest the nearest name for a missing one."""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from mixtrain import checks
from mixtrain.compat.mindspore.refused_names import REFUSED, stub

_INNER: Final = "mixtrain.compat.mindspore.inner_names"

# Modules that MindSpore has, or had, and where their names are here. A module that exists here, too, keeps its own
# names and adds these.
HOMES: Final[Mapping[str, tuple[str, ...]]] = types.MappingProxyType({
    "mixtrain._checkparam": ("mixtrain.compat.mindspore.argument_checks",),
    "mixtrain._extends": (_INNER,),
    "mixtrain.boost": ("mixtrain.compat.mindspore.grad_accumulation",),
    "mixtrain.boost.grad_accumulation": ("mixtrain.compat.mindspore.grad_accumulation",),
    "mixtrain.common": ("mixtrain", "mixtrain.common.initializer"),
    "mixtrain.common.api": ("mixtrain", _INNER),
    "mixtrain.common.dtype": ("mixtrain.dtype", _INNER),
    "mixtrain.common.parameter": ("mixtrain",),
    "mixtrain.common.seed": ("mixtrain.seed", _INNER),
    "mixtrain.common.tensor": ("mixtrain",),
    "mixtrain.communication.management": ("mixtrain.communication",),
    "mixtrain.dataset": (_INNER,),
    "mixtrain.dataset.core": ("mixtrain.dataset",),
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
    "mixtrain.dataset.vision.utils": ("mixtrain.dataset.vision",),
    "mixtrain.graph": ("mixtrain",),
    "mixtrain.graph.lazy_inline": ("mixtrain",),
    **dict.fromkeys((f"mixtrain.nn.{path}" for path in (
        "cell", "dynamic_lr", "layer", "layer.basic", "layer.combined", "layer.image", "layer.math",
        "layer.normalization", "layer.rnn_cells", "layer.rnns", "layer.timedistributed", "learning_rate_schedule",
        "loss", "loss.loss", "optim", "optim.ada_grad", "optim.adam", "optim.ftrl", "optim.lamb", "optim.lars",
        "optim.momentum", "optim.optimizer", "optim.rmsprop", "optim.sgd", "optim.thor", "utils", "wrap",
        "wrap.grad_reducer", "wrap.loss_scale",
    )), ("mixtrain.nn",)),
    "mixtrain.nn.wrap.cell_wrapper": ("mixtrain.nn", _INNER),
    "mixtrain.ops": ("mixtrain.ops.unlisted",),
    "mixtrain.ops._primitive_cache": ("mixtrain.ops", _INNER),
    **dict.fromkeys((f"mixtrain.ops.{path}" for path in (
        "auto_generate", "communication", "composite", "composite.base",
        "composite.multitype_ops", "function", "function.array_func", "function.clip_func", "function.grad",
        "function.linalg_func", "function.math_func", "function.nn_func", "function.random_func", "functional",
        "primitive",
    )), ("mixtrain.ops", "mixtrain.ops.unlisted")),
    # Where MindSpore has a function and a primitive of one name, as `identity`, these have the primitive.
    **dict.fromkeys((f"mixtrain.ops.operations{path}" for path in (
        "", "._inner_ops", ".array_ops", ".comm_ops", ".control_ops", ".debug_ops", ".image_ops", ".inner_ops",
        ".linalg_ops", ".math_ops", ".nn_ops", ".other_ops", ".random_ops", ".sparse_ops",
    )), ("mixtrain.ops.unlisted", "mixtrain.ops")),
    "mixtrain.nn.metrics": ("mixtrain.nn",),
    "mixtrain.nn.metrics.metric": ("mixtrain.nn.metrics",),
    "mixtrain": (_INNER,),
    **dict.fromkeys(
        ("mixtrain.parallel._auto_parallel_context", "mixtrain.parallel._utils"),
        ("mixtrain.compat.mindspore.parallel_utils",),
    ),
    "mixtrain.runtime": ("mixtrain.common.accepted",),
    "mixtrain.train": ("mixtrain.amp", "mixtrain.serialization"),
    "mixtrain.train.amp": ("mixtrain.amp",),
    "mixtrain.train.callback": ("mixtrain.train", "mixtrain.train.callback.custom_loop"),
    **dict.fromkeys(
        (f"mixtrain.train.callback._{name}" for name in (
            "backup_and_restore", "callback", "checkpoint", "early_stop", "history", "lambda_callback",
            "loss_monitor", "lr_scheduler_callback", "on_request_exit", "reduce_lr_on_plateau", "summary_collector",
            "time_monitor",
        )), ("mixtrain.train.callback", "mixtrain.train.callback.custom_loop"),
    ),
    "mixtrain.train.loss_scale_manager": ("mixtrain.amp",),
    "mixtrain.train.metrics": ("mixtrain.nn.metrics",),
    "mixtrain.train.metrics.metric": ("mixtrain.nn.metrics",),
    "mixtrain.train.model": ("mixtrain.train", "mixtrain.context"),
    "mixtrain.train.serialization": ("mixtrain", _INNER),
    **dict.fromkeys((f"mixtrain.train.{path}" for path in (
        "data_sink", "dataset_helper", "summary", "summary.summary_record", "train_thor",
        "train_thor.convert_utils", "train_thor.dataset_helper",
    )), ("mixtrain.train",)),
    "mixtrain.utils": ("mixtrain",),
    "mixtrain.utils.dlpack": ("mixtrain",),
})

# The `__getattr__` that modules with names of their own to load had before `install_homes`.
_LOADERS: Final[dict[str, Callable[[str], Any]]] = {}


def install_homes() -> None:
    """Make the modules of `HOMES` importable, and suggest the nearest name for one that a public module lacks."""
    named = {home for homes in HOMES.values() for home in homes}
    for home in sorted(named - HOMES.keys()):
        importlib.import_module(home)
    for path in sorted({*HOMES, *REFUSED, *named}):
        module = sys.modules.get(path)
        if module is None:
            doc = f"The names of {' and '.join(HOMES[path])}, where MindSpore has them." if path in HOMES else (
                "MindSpore names that are not available here; using one says what to write instead."
            )
            module = types.ModuleType(path, doc)
            module.__path__ = []  # Makes it a package, so that modules below it can be imported.
            sys.modules[path] = module
            parent, _, name = path.rpartition(".")
            if name not in vars(sys.modules[parent]) and stub(parent, name) is None:
                setattr(sys.modules[parent], name, module)
        if "__getattr__" in vars(module):
            _LOADERS[path] = vars(module)["__getattr__"]
        homes = [sys.modules[home] for home in HOMES.get(path, ())]
        module.__getattr__ = _finder(module, homes)  # type: ignore[method-assign]
        if homes and "__all__" not in vars(module):
            names = {name for home in homes for name in public_names(home)}
            module.__all__ = sorted(names)  # type: ignore[attr-defined]


def public_names(module: types.ModuleType) -> list[str]:
    """Return the public names of a module."""
    names: Iterable[str] = vars(module).get("__all__") or (name for name in vars(module) if not name.startswith("_"))
    return list(names)


def _finder(module: types.ModuleType, homes: list[types.ModuleType]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a module: names of its homes, else an error with the nearest name."""

    def find(name: str) -> Any:
        if not name.startswith("__"):
            for home in (module, *homes):
                if name in vars(home):
                    return vars(home)[name]
                if home.__name__ in _LOADERS and name in public_names(home):
                    return _LOADERS[home.__name__](name)
            for home in (module, *homes):
                refused = stub(home.__name__, name)
                if refused is not None:
                    return refused
        names = {other for home in (module, *homes) for other in public_names(home)}
        matches = [] if name.startswith("_") else checks.nearest(name, sorted(names), cutoff=0.6)
        advice = f"Write {module.__name__}.{matches[0]}" if matches else "docs/from_mindspore.md lists what there is"
        raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}. {advice}.", name=name, obj=module)

    return find

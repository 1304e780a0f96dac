"""apex's levels O0 to O3 as a table, and the check of a call's options against them."""

from __future__ import annotations

import dataclasses
from typing import Any, Final, Literal

from mixtrain import checks
from mixtrain.dtype import DType, as_dtype, bfloat16, float16, float32
from mixtrain.loss_scale.rule import SMALLEST_NORMAL, checked_scale

OptLevel = Literal["O0", "O1", "O2", "O3"]
_WHERE: Final = "amp.initialize"
DYNAMIC: Final = "dynamic"


@dataclasses.dataclass(frozen=True)
class Options:
    """Precision options of a network and its optimizer.

    Attributes:
        opt_level: "O0" to "O3".
        cast_model_type: The half dtype of layers or operators; float32 at O0.
        patch_torch_functions: Whether operators are cast one by one (autocast).
        keep_batchnorm_fp32: Whether normalization is kept in float32; None if no layer is cast.
        master_weights: Whether parameters are stored in half with float32 copies.
        loss_scale: "dynamic" or a number; 1.0 for none.
    """

    opt_level: str
    cast_model_type: DType
    patch_torch_functions: bool
    keep_batchnorm_fp32: bool | None
    master_weights: bool
    loss_scale: float | str

    @property
    def casts_layers(self) -> bool:
        """Whether parameters are stored in half, and layers compute in it."""
        return self.opt_level in ("O2", "O3")


LEVELS: Final = {
    level.opt_level: level
    for level in (
        Options("O0", float32, False, None, False, 1.0),
        Options("O1", float16, True, None, False, DYNAMIC),
        Options("O2", float16, False, True, True, DYNAMIC),
        Options("O3", float16, False, False, False, 1.0),
    )
}
# Options that contradict a level, and why.
_CONTRADICTIONS: Final = {
    ("O0", "cast_model_type"): "nothing is cast",
    ("O0", "keep_batchnorm_fp32"): "everything is in float32",
    ("O0", "master_weights"): "the parameters are float32 themselves",
    ("O1", "keep_batchnorm_fp32"): "operators are cast, not layers, and normalization is on the float32 list",
    ("O1", "master_weights"): "the parameters are float32 themselves",
}


def resolve_options(opt_level: str, **overrides: Any) -> Options:
    """Return the options of a level, with the caller's overrides.

    `opt_level`: "O0" to "O3". `**overrides`: The other fields of `Options`; None for the level's default.

    Raises: TypeError if an option has the wrong type. ValueError if an option is out of range, or contradicts the
    level.
    """
    if opt_level in ("o0", "o1", "o2", "o3", 0, 1, 2, 3):
        raise checks.fail_value(
            _WHERE, 'opt_level must be "O0", "O1", "O2" or "O3", the letter O and a digit', opt_level,
            f'opt_level="O{opt_level[-1] if isinstance(opt_level, str) else int(opt_level)}"',
        )
    checks.one_of(_WHERE, "opt_level", opt_level, tuple(LEVELS))
    level = LEVELS[opt_level]
    values = {name: _CHECKS[name](value) for name, value in overrides.items() if value is not None}
    for name, value in values.items():
        conflict = _CONTRADICTIONS.get((opt_level, name))
        if name == "patch_torch_functions" and value and not level.patch_torch_functions:
            conflict = "layers are cast or nothing is, and operators only at O1"
        elif name == "patch_torch_functions" and not value and level.patch_torch_functions:
            conflict = "its operators are cast"
        elif name == "cast_model_type" and opt_level != "O0" and value == float32:
            conflict = f"{'layers' if level.casts_layers else 'operators'} compute in half"
        if conflict is not None:
            raise ValueError(
                f"{_WHERE}: expected options that go together; got "
                f'opt_level="{opt_level}" with {name}={checks.short_repr(overrides[name])}, '
                f"but at {opt_level} {conflict}. Write it without {name}, or {_other_level(name, value)}."
            )
    return dataclasses.replace(level, **values)


def _other_level(name: str, value: Any) -> str:
    """Return the level at which an option may have a value."""
    if name == "cast_model_type" and value == float32:
        return 'opt_level="O0"'
    return 'opt_level="O1"' if name == "patch_torch_functions" else 'opt_level="O2"'


def _half(value: Any) -> DType:
    dtype = as_dtype(value)
    if dtype not in (float16, bfloat16, float32):
        raise checks.fail_value(
            _WHERE, "cast_model_type must be float16 or bfloat16", dtype.name, "cast_model_type=mixtrain.float16"
        )
    return dtype


def _boolean(name: str) -> Any:
    """Return the check of a bool, which command lines of apex's scripts pass as a str."""

    def check(value: Any) -> bool:
        return checks.boolean(_WHERE, name, {"True": True, "False": False}.get(value, value))

    return check


def _loss_scale(value: Any) -> float | str:
    if isinstance(value, str):
        try:
            value = value if value == DYNAMIC else float(value)
        except ValueError:
            raise checks.fail_value(
                _WHERE, 'loss_scale must be "dynamic" or a number', value, 'loss_scale="dynamic"'
            ) from None
    if isinstance(value, str):
        return value
    return checked_scale(_WHERE, "loss_scale", value, example=128.0, minimum=SMALLEST_NORMAL)


_CHECKS: Final = {
    "cast_model_type": _half,
    "patch_torch_functions": _boolean("patch_torch_functions"),
    "keep_batchnorm_fp32": _boolean("keep_batchnorm_fp32"),
    "master_weights": _boolean("master_weights"),
    "loss_scale": _loss_scale,
}


def options_table(options: Options) -> str:
    """Return a table of the options, with the level's default where the caller overrides it."""
    level = LEVELS[options.opt_level]
    lines = []
    for field in dataclasses.fields(options):
        value, default = getattr(options, field.name), getattr(level, field.name)
        note = "" if value == default else f"  (given; {options.opt_level} has {_text(default)})"
        lines.append(f"{field.name:<22}: {_text(value)}{note}")
    return "\n".join(lines)


def _text(value: Any) -> Any:
    return "-" if value is None else value.name if isinstance(value, DType) else value

"""The levels of mixed precision, a row each, and `auto`, which chooses one for the device."""

from __future__ import annotations

import dataclasses
from typing import Final, Literal

from mixtrain import backend, checks
from mixtrain.dtype import FLOAT8_RULES, HALF_DTYPES, DType, as_precision, bfloat16, float16
from mixtrain.precision.families import Family

AmpLevel = Literal["O0", "O1", "O2", "O3", "auto"]
Compute = Literal["unchanged", "float32", "half"]

LEVEL_NAMES: Final = ("O0", "O1", "O2", "O3", "auto")


# Names of precisions in Keras and PyTorch, with what to write for them.
_O2_FLOAT16: Final = 'amp_level="O2"'
_O2_FLOAT8: Final = 'amp_level="O2", cast_model_type="float8"'
_O2_BFLOAT16: Final = 'amp_level="O2", cast_model_type="bfloat16"'
_OTHER_NAMES: Final = {
    **dict.fromkeys(("mixed_float16", "float16", "fp16", "half", "16", "16-mixed", "mixed", "true"), _O2_FLOAT16),
    **dict.fromkeys(("mixed_bfloat16", "bfloat16", "bf16", "bf16-mixed"), _O2_BFLOAT16),
    **dict.fromkeys(("float8", "fp8", "mixed_float8", "fp8-mixed"), _O2_FLOAT8),
    **dict.fromkeys(("float32", "fp32", "32", "32-true", "none", "no", "off", "false"), 'amp_level="O0"'),
}


@dataclasses.dataclass(frozen=True)
class Level:
    """The rules of one level.

    `name`: "O0" to "O3". `default`: How layers of other families compute. `in_half`: Families of layers that compute in
    half and return float32. `in_float32`: Families of layers kept in float32. `keeps_probabilities`: Whether a softmax,
    sigmoid or the like that ends the network is kept in float32. `scales_loss`: Whether float16 gets a
    `DynamicLossScaleManager` by default.
    """

    name: str
    default: Compute
    in_half: frozenset[Family] = frozenset()
    in_float32: frozenset[Family] = frozenset()
    keeps_probabilities: bool = False
    scales_loss: bool = False


LEVELS: Final = {
    level.name: level
    for level in (
        Level("O0", "unchanged"),
        Level("O1", "float32", in_half=frozenset({"matmul", "recurrent"}), keeps_probabilities=True),
        Level("O2", "half", in_float32=frozenset({"normalization"}), keeps_probabilities=True, scales_loss=True),
        Level("O3", "half", keeps_probabilities=True),
    )
}


@dataclasses.dataclass(frozen=True)
class Resolved:
    """A level and half dtype, with the reason for the choice.

    `float8`: The rule by which products are computed in float8, or None.
    """

    level: Level
    half: DType
    reason: str
    float8: DType | None = None


def check_level(where: str, amp_level: AmpLevel) -> None:
    """Refuse what is not a level; the error says which one is meant."""
    write = _OTHER_NAMES.get(str(amp_level).lower()) if isinstance(amp_level, (str, int, type(None))) else None
    if write is not None:
        raise checks.fail_value(where, f"amp_level must be one of {checks.join_names(LEVEL_NAMES)}", amp_level, write)
    checks.one_of(where, "amp_level", amp_level, LEVEL_NAMES)


def resolve_level(
    where: str, amp_level: AmpLevel, cast_model_type: DType | str | None, *, small: bool = False
) -> Resolved:
    """Return the level and half dtype for `amp_level` and `cast_model_type` on this device.

    `cast_model_type` None is the level's own: float16, or the choice of `auto`. `small`: all products of the network
    are so small that on a CPU casts cost more than half precision gains.
    """
    check_level(where, amp_level)
    half = None if cast_model_type is None else as_precision(cast_model_type)
    if half not in (None, *HALF_DTYPES, *FLOAT8_RULES):
        raise checks.fail_value(
            where, "cast_model_type must be float16, bfloat16 or float8", half.name, "cast_model_type=mixtrain.float16"
        )
    if half in FLOAT8_RULES:
        # What is not a product of dense layers computes in bfloat16, which has the range of float32.
        resolved = resolve_level(where, amp_level, bfloat16, small=small)
        return dataclasses.replace(resolved, float8=half)
    if amp_level != "auto":
        return Resolved(LEVELS[amp_level], half or float16, "as requested")
    device = backend.describe_device()
    if device.kind != "CPU":
        return Resolved(LEVELS["O2"], half or float16, f"auto: {device.kind} computes half precision in hardware")
    if device.fast_bfloat16 and small:
        return Resolved(LEVELS["O0"], half or bfloat16, "auto: on a CPU products as small as these gain nothing")
    if device.fast_bfloat16:
        return Resolved(LEVELS["O2"], half or bfloat16, "auto: bfloat16 is faster than float32 on this CPU")
    return Resolved(LEVELS["O0"], half or float16, "auto: half precision gains no time on this CPU")

"""Orthonormal cosine transforms of the second type, and their inverses: `scipy.fft`; of ints and halves in float32."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import keras

from mixtrain import backend, checks
from mixtrain.dtype import complex64, complex128, float16, float32, float64, int16, int32, int64
from mixtrain.lazy_names import serve_names
from mixtrain.ops.complex_numbers import as_complex, is_complex_tensor
from mixtrain.ops.inputs import an_int, as_floats, axes_of, rank_of, widened
from mixtrain.ops.operator import operator
from mixtrain.ops.spectral import resized
from mixtrain.scipy.arguments import a_tensor
from mixtrain.typing import Tensor, TensorLike

_DTYPES: Final = (int16, int32, int64, float16, float32, float64, complex64, complex128)
_Ints = Sequence[int] | None


def _transform(name: str, x: TensorLike, type: int, s: _Ints, axes: _Ints, norm: str | None) -> Tensor:
    where, along_last = f"scipy.fft.{name}", getattr(backend.special, name.rstrip("n"))
    value = widened(as_floats(where, a_tensor(where, "x", x, _DTYPES)))
    checks.one_of(where, "type", an_int(where, "type", type, example=2), (2,))
    checks.one_of(where, "norm", norm, (None, "ortho"))
    if not rank_of(value):
        raise checks.fail_value(where, "x must have an axis", value, "x.reshape(1)")
    axes = tuple(range(-len(s), 0)) if axes is None and s is not None else axes
    axes = axes_of(where, axes, rank_of(value), name="axes")
    sizes = [value.shape[axis] for axis in axes] if s is None else s
    if len(sizes) != len(axes):
        raise checks.fail_value(where, f"s must have {len(axes)} lengths, one for each axis", s, "s=None")
    parts = [keras.ops.real(value), keras.ops.imag(value)] if is_complex_tensor(value) else [value]
    for size, axis in zip(sizes, axes, strict=True):
        size = checks.integer(where, "n", size, at_least=1)
        parts = [keras.ops.moveaxis(resized(part, axis, size), axis, -1) for part in parts]
        parts = [keras.ops.moveaxis(along_last(part), -1, axis) for part in parts]
    return parts[0] if len(parts) == 1 else as_complex(parts[0]) + 1j * as_complex(parts[1])


def dct(x: TensorLike, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None) -> Tensor:
    """The cosine transform of `x` along `axis`, cut or filled to the length `n`; `type` is 2, `norm` None or "ortho".

    Example:
        >>> import mixtrain
        >>> print(mixtrain.scipy.fft.dct(mixtrain.Tensor([1.0, 3.0])).round())
        [ 3. -1.]
    """
    return _transform("dct", x, type, None if n is None else (n,), (axis,), norm)


def idct(x: TensorLike, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None) -> Tensor:
    """The inverse of `dct` of `x`, `type`, `n`, `axis` and `norm`. Example: ``idct(dct(x))``."""
    return _transform("idct", x, type, None if n is None else (n,), (axis,), norm)


def dctn(x: TensorLike, type: int = 2, s: _Ints = None, axes: _Ints = None, norm: str | None = None) -> Tensor:
    """`dct` of `x`, `type`, `norm` along `axes` (the last, or all), of the lengths `s`: ``dctn(x, s=(2, 4))``."""
    return _transform("dctn", x, type, s, axes, norm)


def idctn(x: TensorLike, type: int = 2, s: _Ints = None, axes: _Ints = None, norm: str | None = None) -> Tensor:
    """The inverse of `dctn` of `x`, `type`, `s`, `axes` and `norm`. Example: ``idctn(dctn(x))``."""
    return _transform("idctn", x, type, s, axes, norm)


__all__ = ["dct", "dctn", "idct", "idctn"]
globals().update({name: operator(name, globals()[name], owner="scipy.fft") for name in __all__})

serve_names(__name__)

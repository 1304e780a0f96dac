"""Complex numbers: made of parts or of lengths and angles, taken apart, conjugated; eigenvalues, which may be some."""

from __future__ import annotations

from typing import Any, Final

import keras
import numpy as np

from mixtrain.dtype import bool_, complex64, complex128, float64
from mixtrain.dtype import is_complex as is_complex_format
from mixtrain.dtype import is_float
from mixtrain.ops.array import transpose
from mixtrain.ops.elementwise import unary_function
from mixtrain.ops.inputs import as_floats, format_of, pair, tensor
from mixtrain.ops.primitive import Primitive, configured, primitive
from mixtrain.ops.unary import abs, sign


def held_complex(x: Any) -> bool:
    """Whether a backend tensor holds complex numbers."""
    return is_complex_format(format_of(x))


def as_complex(x: Any) -> Any:
    """Return a tensor of complex numbers: complex128 of float64, else complex64."""
    if held_complex(x):
        return x
    return keras.ops.cast(x, complex128 if format_of(x) == float64 else complex64)


def complex(real: Any, imag: Any) -> Any:
    """Return `real` + `imag` i of two float tensors of one dtype.

    Example: ``ops.Complex()(Tensor([1.0]), Tensor([2.0]))``. Source: MindSpore, `mindspore.ops.Complex`.
    """
    one, other = pair("ops.Complex", real, imag)
    one, other = (as_floats("ops.Complex", part) for part in (one, other))
    shape = np.broadcast_shapes(tuple(one.shape), tuple(other.shape))
    parts = [keras.ops.broadcast_to(part, shape) for part in (one, other)]
    return keras.ops.view_as_complex(keras.ops.stack(parts, axis=-1))


def polar(abs: Any, angle: Any) -> Any:
    """Return the complex numbers of lengths `abs` at angles `angle`, two float tensors of one shape.

    Example: ``ops.polar(Tensor([1.0]), Tensor([3.14]))``. Source: MindSpore, `mindspore.ops.polar`.
    """
    length, turned = pair("ops.polar", abs, angle)
    return complex(length * keras.ops.cos(turned), length * keras.ops.sin(turned))


def view_as_real(input: Any) -> Any:
    """Return the real and the imaginary parts of the complex `input`, side by side on a new last axis.

    Example: ``ops.view_as_real(Tensor([2 + 1j]))``. Source: MindSpore, `mindspore.ops.view_as_real`.
    """
    return keras.ops.view_as_real(as_complex(tensor("ops.view_as_real", input)))


def is_complex(input: Any) -> bool:
    """Whether `input` holds complex numbers. Source: MindSpore, `mindspore.ops.is_complex`."""
    return held_complex(tensor("ops.is_complex", input))


def is_floating_point(input: Any) -> bool:
    """Whether `input` holds floats. Source: MindSpore, `mindspore.ops.is_floating_point`."""
    return is_float(format_of(tensor("ops.is_floating_point", input)))


def _angle(x: Any) -> Any:
    if held_complex(x):
        return keras.ops.angle(x)
    return keras.ops.where(x < 0, keras.ops.full_like(x, 3.141592653589793), keras.ops.zeros_like(x))


def _sgn(x: Any) -> Any:
    if not held_complex(x):
        return sign(x)
    length = keras.ops.abs(x)
    return x / as_complex(keras.ops.where(length == 0, keras.ops.ones_like(length), length))


def _of_parts(compute: Any, of_real: Any) -> Any:
    return lambda x: compute(x) if held_complex(x) else of_real(x)


def _all_true(x: Any) -> Any:
    return keras.ops.ones_like(x, dtype=bool_)


conj: Final = unary_function(
    "conj", _of_parts(keras.ops.conj, lambda x: x), "The complex conjugate of `input`.", floats=False
)
real: Final = unary_function(
    "real", _of_parts(keras.ops.real, lambda x: x), "The real part of `input`.", floats=False
)
imag: Final = unary_function(
    "imag", _of_parts(keras.ops.imag, keras.ops.zeros_like), "The imaginary part of `input`.", floats=False
)
angle: Final = unary_function("angle", _angle, "The angle of `input` as a complex number.")
isreal: Final = unary_function(
    "isreal", _of_parts(lambda x: keras.ops.imag(x) == 0, _all_true), "Whether `input` is real.", floats=False
)
sgn: Final = unary_function("sgn", _sgn, "The sign of `input`; of a complex number, its direction.", floats=False)


def conjugate_transpose(x: Any, perm: Any) -> Any:
    """Return `x` with its axes in the order `perm`, conjugate."""
    return conj(transpose(x, perm))


def eig(A: Any) -> tuple[Any, Any]:
    """Return the eigenvalues and eigenvectors of square matrices `A`, complex numbers.

    Example: ``ops.eig(Tensor([[1.0, 0.0], [0.0, 2.0]]))``. Source: MindSpore, `mindspore.ops.eig`.
    """
    values, vectors = keras.ops.eig(as_floats("ops.eig", A))
    return as_complex(values), as_complex(vectors)


def eigvals(A: Any) -> Any:
    """Return the eigenvalues of square matrices `A`, complex numbers.

    Example: ``ops.eigvals(Tensor([[1.0, 0.0], [0.0, 2.0]]))``. Source: MindSpore, `mindspore.ops.eigvals`.
    """
    return eig(A)[0]


def _eig(x: Any, compute_v: bool) -> tuple[Any, Any]:
    values, vectors = eig(x)
    return values, vectors if compute_v else keras.ops.zeros((0,), vectors.dtype)


def matrix_logarithm(x: Any) -> Any:
    """Return the logarithm of complex square matrices that have as many eigenvectors as rows."""
    values, vectors = eig(as_complex(tensor("ops.MatrixLogarithm", x)))
    logarithms = complex(keras.ops.log(keras.ops.abs(values)), keras.ops.angle(values))
    scaled = vectors * keras.ops.cast(keras.ops.expand_dims(logarithms, -2), vectors.dtype)
    return keras.ops.matmul(scaled, keras.ops.inv(vectors))


Complex: Final = primitive("Complex", complex)
ComplexAbs: Final = primitive("ComplexAbs", abs)
Polar: Final = primitive("Polar", polar)
Real: Final = primitive("Real", real)
Imag: Final = primitive("Imag", imag)
Conj: Final = primitive("Conj", conj)
Angle: Final = primitive("Angle", angle)
ConjugateTranspose: Final = primitive("ConjugateTranspose", conjugate_transpose)
Eig: Final[type[Primitive]] = configured("Eig", _eig, compute_v=False)
MatrixLogarithm: Final = primitive("MatrixLogarithm", matrix_logarithm)

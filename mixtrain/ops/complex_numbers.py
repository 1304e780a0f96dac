"""Complex numbers: construction, parts, conjugates, and eigenvalues, with their primitives."""

from __future__ import annotations

import math
from collections.abc import Callable

import keras
import numpy as np

from mixtrain.dtype import bool_, complex64, complex128, float64, is_complex as is_complex_dtype, is_float
from mixtrain.ops.array import transpose
from mixtrain.ops.elementwise import unary_function
from mixtrain.ops.inputs import as_floats, pair, tensor, tensor_dtype
from mixtrain.ops.primitive import configured, primitive, primitives
from mixtrain.ops.unary import abs, sign
from mixtrain.typing import Tensor, TensorLike


def is_complex_tensor(x: Tensor) -> bool:
    """Whether a backend tensor holds complex numbers."""
    return is_complex_dtype(tensor_dtype(x))


def as_complex(x: TensorLike) -> Tensor:
    """Return a tensor as a complex one: complex128 for float64, else complex64."""
    if is_complex_tensor(x):
        return x
    return keras.ops.cast(x, complex128 if tensor_dtype(x) == float64 else complex64)


def complex(real: TensorLike, imag: TensorLike) -> Tensor:
    """Return `real` + i * `imag` for two float tensors. Example: ``ops.Complex()(Tensor([1.0]), Tensor([2.0]))``."""
    parts = [as_floats("ops.Complex", part) for part in pair("ops.Complex", real, imag)]
    shape = np.broadcast_shapes(*(tuple(part.shape) for part in parts))
    parts = [keras.ops.broadcast_to(part, shape) for part in parts]
    return keras.ops.view_as_complex(keras.ops.stack(parts, axis=-1))


def polar(abs: TensorLike, angle: TensorLike) -> Tensor:
    """The complex numbers of absolute value `abs` and `angle`, float tensors. Example: ``ops.polar(x, y)``."""
    abs, angle = pair("ops.polar", abs, angle)
    return complex(abs * keras.ops.cos(angle), abs * keras.ops.sin(angle))


def view_as_real(input: TensorLike) -> Tensor:
    """The real and imaginary parts of the complex `input` on a new last axis. Example: ``ops.view_as_real(z)``."""
    return keras.ops.view_as_real(as_complex(tensor("ops.view_as_real", input)))


def is_complex(input: TensorLike) -> bool:
    """Whether `input` holds complex numbers."""
    return is_complex_tensor(tensor("ops.is_complex", input))


def is_floating_point(input: TensorLike) -> bool:
    """Whether `input` holds floats."""
    return is_float(tensor_dtype(tensor("ops.is_floating_point", input)))


def _angle(x: Tensor) -> Tensor:
    if is_complex_tensor(x):
        return keras.ops.angle(x)
    angles = keras.ops.where(x < 0, keras.ops.full_like(x, math.pi), keras.ops.zeros_like(x))
    return keras.ops.where(keras.ops.isnan(x), x, angles)


def _sgn(x: Tensor) -> Tensor:
    if not is_complex_tensor(x):
        return sign(x)
    magnitude = keras.ops.abs(x)
    return x / as_complex(keras.ops.where(magnitude == 0, keras.ops.ones_like(magnitude), magnitude))


def _by_dtype(
    of_complex: Callable[[Tensor], Tensor], of_real: Callable[[Tensor], Tensor]
) -> Callable[[Tensor], Tensor]:
    return lambda x: of_complex(x) if is_complex_tensor(x) else of_real(x)


def _all_true(x: Tensor) -> Tensor:
    return keras.ops.ones_like(x, dtype=bool_)


conj = unary_function("conj", _by_dtype(keras.ops.conj, lambda x: x), "The complex conjugate of `input`.", floats=False)
real = unary_function("real", _by_dtype(keras.ops.real, lambda x: x), "The real part of `input`.", floats=False)
imag = unary_function(
    "imag", _by_dtype(keras.ops.imag, keras.ops.zeros_like), "The imaginary part of `input`.", floats=False
)
angle = unary_function("angle", _angle, "The angle of `input` as a complex number.")
isreal = unary_function(
    "isreal", _by_dtype(lambda x: keras.ops.imag(x) == 0, _all_true), "Whether `input` is real.", floats=False
)
sgn = unary_function("sgn", _sgn, "The sign of `input`; of a complex number, its direction.", floats=False)


def conjugate_transpose(x: TensorLike, perm: TensorLike) -> Tensor:
    """Return the conjugate of `x` with its axes in the order `perm`."""
    return conj(transpose(x, perm))


def eig(A: TensorLike) -> tuple[Tensor, Tensor]:
    """The complex eigenvalues and eigenvectors of the square matrices `A`. Example: ``ops.eig(A)``."""
    values, vectors = keras.ops.eig(as_floats("ops.eig", A))
    return as_complex(values), as_complex(vectors)


def eigvals(A: TensorLike) -> Tensor:
    """The complex eigenvalues of the square matrices `A`. Example: ``ops.eigvals(A)``."""
    return eig(A)[0]


def _eig(x: Tensor, compute_v: bool) -> tuple[Tensor, Tensor]:
    values, vectors = eig(x)
    return values, vectors if compute_v else keras.ops.zeros((0,), vectors.dtype)


def eigh(x: TensorLike, compute_eigenvectors: bool = True, lower: bool = True) -> Tensor | tuple[Tensor, Tensor]:
    """The eigenvalues of Hermitian matrices, ascending, and their eigenvectors; one triangle of `x` is read."""
    matrix = as_floats("ops.Eigh", x)
    half = keras.ops.tril(matrix, -1) if lower else keras.ops.triu(matrix, 1)
    whole = (keras.ops.tril(matrix) if lower else keras.ops.triu(matrix)) + conj(keras.ops.swapaxes(half, -1, -2))
    values, vectors = keras.ops.eigh(whole)
    values = keras.ops.cast(values, matrix.dtype)  # Complex ones of complex matrices, as in MindSpore.
    return (values, vectors) if compute_eigenvectors else values


def matrix_logarithm(x: TensorLike) -> Tensor:
    """Return the logarithm of diagonalizable complex square matrices."""
    values, vectors = eig(as_complex(tensor("ops.MatrixLogarithm", x)))
    logarithms = complex(keras.ops.log(keras.ops.abs(values)), keras.ops.angle(values))
    scaled = vectors * keras.ops.cast(keras.ops.expand_dims(logarithms, -2), vectors.dtype)
    return keras.ops.matmul(scaled, keras.ops.inv(vectors))


Complex, ComplexAbs, Polar, Real, Imag, Conj, Angle, ConjugateTranspose = primitives(
    Complex=complex, ComplexAbs=abs, Polar=polar, Real=real, Imag=imag, Conj=conj, Angle=angle,
    ConjugateTranspose=conjugate_transpose,
)
Eig = configured("Eig", _eig, compute_v=False)
MatrixLogarithm = primitive("MatrixLogarithm", matrix_logarithm)

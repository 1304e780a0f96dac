"""Special functions, bits and random numbers that Keras, or some of its versions, lack."""

from __future__ import annotations

from collections.abc import Callable

from mixtrain.typing import Tensor

# The regularized lower and upper incomplete gamma functions of ``(a, x)``.
igamma: Callable[[Tensor, Tensor], Tensor]
igammac: Callable[[Tensor, Tensor], Tensor]
# The Hurwitz zeta function of ``(x, q)``.
zeta: Callable[[Tensor, Tensor], Tensor]
# The derivative of order `n` of the digamma function at `x`, of ``(n, x)``.
polygamma: Callable[[Tensor, Tensor], Tensor]
# The regularized incomplete beta function of ``(a, b, x)``.
betainc: Callable[[Tensor, Tensor, Tensor], Tensor]
# The orthonormal cosine transform of the second type along the last axis of a real tensor, and its inverse.
dct: Callable[[Tensor], Tensor]
idct: Callable[[Tensor], Tensor]
# The next representable number after `x` towards `y`, of ``(x, y)``.
nextafter: Callable[[Tensor, Tensor], Tensor]

def lu(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the packed LU factorization of square matrices, the row exchanged in each step, and the order of rows."""

def float32_bits(x: Tensor) -> Tensor:
    """Return the bits of float32 values as int32."""

def bitcast(x: Tensor, dtype: str) -> Tensor:
    """Return the bits of values as those of another dtype of the same size."""

def random_bits(shape: tuple[int, ...], seed: Tensor, index: int) -> Tensor:
    """Return random uint32 numbers that depend on the state of a `keras.random.SeedGenerator` and an index alone."""

def poisson(seed: Tensor, rate: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return float32 numbers of Poisson distributions whose means, `rate`, are the last axes of `shape`."""

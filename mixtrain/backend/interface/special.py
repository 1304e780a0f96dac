"""Special functions that Keras, or some of its versions, lack."""

from __future__ import annotations

from mixtrain.typing import Tensor


def igamma(a: Tensor, x: Tensor) -> Tensor:
    """Return the regularized lower incomplete gamma function."""

def igammac(a: Tensor, x: Tensor) -> Tensor:
    """Return the regularized upper incomplete gamma function."""

def zeta(x: Tensor, q: Tensor) -> Tensor:
    """Return the Hurwitz zeta function."""

def polygamma(n: Tensor, x: Tensor) -> Tensor:
    """Return the derivative of order `n` of the digamma function at `x`."""

def betainc(a: Tensor, b: Tensor, x: Tensor) -> Tensor:
    """Return the regularized incomplete beta function."""

def nextafter(x: Tensor, y: Tensor) -> Tensor:
    """Return the next representable number after `x` towards `y`."""

def float32_bits(x: Tensor) -> Tensor:
    """Return the bits of float32 values as int32."""

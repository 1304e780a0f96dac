"""Fourier transforms of complex, real and Hermitian signals, and the short-time Fourier transform."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import keras
import numpy as np

from mixtrain import backend, checks
from mixtrain.dtype import as_dtype, float32
from mixtrain.ops.array import roll
from mixtrain.ops.complex_numbers import as_complex, complex, is_complex_tensor, view_as_real
from mixtrain.ops.elementwise import named
from mixtrain.ops.inputs import as_floats, axes_of, axis_of, rank_of, tensor
from mixtrain.ops.primitive import REQUIRED, configured
from mixtrain.typing import DTypeLike, Tensor, TensorLike

# The power of 1 / n by which the transform and its inverse are scaled.
_SCALES: Final = {"backward": (0.0, 1.0), "ortho": (0.5, 0.5), "forward": (1.0, 0.0)}


def _scaled(x: Tensor, where: str, norm: str | None, inverse: bool, size: int) -> Tensor:
    power = _SCALES[checks.one_of(where, "norm", norm or "backward", tuple(_SCALES))][inverse]
    return x if not power else x * float(size) ** -power


def resized(x: Tensor, axis: int, size: int) -> Tensor:
    """Return `x` with an axis truncated or padded with zeros to a size."""
    x = keras.ops.take(x, np.arange(min(size, x.shape[axis])), axis=axis)
    missing = size - x.shape[axis]
    return keras.ops.pad(x, [(0, missing if other == axis else 0) for other in range(rank_of(x))]) if missing else x


def _complex(where: str, x: Tensor, size: int, axis: int, norm: str | None, inverse: bool) -> Tensor:
    z = keras.ops.moveaxis(resized(as_complex(x), axis, size), axis, -1)
    # The inverse is the conjugate of the transform of the conjugate.
    z = keras.ops.conj(z) if inverse else z
    spectrum = complex(*keras.ops.fft((keras.ops.real(z), keras.ops.imag(z))))
    spectrum = keras.ops.conj(spectrum) if inverse else spectrum
    return keras.ops.moveaxis(_scaled(spectrum, where, norm, inverse, size), -1, axis)


def _to_half(where: str, x: Tensor, size: int, axis: int, norm: str | None, inverse: bool) -> Tensor:
    """The first half of the spectrum of a real signal, which determines the rest."""
    spectrum = _complex(where, keras.ops.real(x) if is_complex_tensor(x) else x, size, axis, norm, inverse)
    return keras.ops.take(spectrum, np.arange(size // 2 + 1), axis=axis)


def _from_half(where: str, x: Tensor, size: int, axis: int, norm: str | None, inverse: bool) -> Tensor:
    """The real signal of the first half of its spectrum."""
    length = size // 2 + 1
    half = resized(as_complex(x), axis, length)
    rest = keras.ops.conj(keras.ops.take(half, np.arange(size - length, 0, -1), axis=axis))
    whole = keras.ops.concatenate([half, rest], axis=axis)
    return keras.ops.real(_complex(where, whole, size, axis, norm, inverse))


def _transform(
    where: str, x: Tensor, s: Sequence[int] | None, dim: int | Sequence[int] | None, norm: str | None, inverse: bool,
    last: Callable[..., Tensor], last_first: bool,
) -> Tensor:
    """Transform along the axes `dim`, of sizes `s`; the last one by `last`."""
    rank = rank_of(x)
    axes = axes_of(where, tuple(range(rank - len(s), rank)) if dim is None and s is not None else dim, rank, name="dim")
    sizes = list(s) if s is not None else [x.shape[axis] for axis in axes]
    if last is _from_half and s is None:
        sizes[-1] = 2 * (sizes[-1] - 1)
    steps = [(_complex, size, axis) for size, axis in zip(sizes[:-1], axes[:-1], strict=True)]
    ends = [(last, sizes[-1], axes[-1])]
    for step, size, axis in ends + steps if last_first else steps + ends:
        x = step(where, x, size, axis, norm, inverse)
    return x


# By name: whether it is an inverse, the transform of the last axis, and whether that axis comes first.
_KINDS: Final[dict[str, tuple[bool, Callable[..., Tensor], bool]]] = {
    "fft": (False, _complex, False), "ifft": (True, _complex, False),
    "rfft": (False, _to_half, True), "irfft": (True, _from_half, False),
    # The transform of Hermitian signals, whose spectrum is real, and its inverse.
    "hfft": (False, _from_half, False), "ihfft": (True, _to_half, True),
}


def _one_axis(name: str) -> Callable[..., Tensor]:
    def compute(input: TensorLike, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
        where = f"ops.{name}"
        x = as_floats(where, input)
        inverse, last, last_first = _KINDS[name]
        axes = (axis_of(where, dim, rank_of(x), name="dim"),)
        return _transform(where, x, None if n is None else (n,), axes, norm, inverse, last, last_first)

    return _transform_named(compute, name, "one axis `dim`, of `n` numbers")


def _many_axes(name: str, default: Sequence[int] | None) -> Callable[..., Tensor]:
    kind = name[:-1]

    def compute(
        input: TensorLike, s: Sequence[int] | None = None, dim: Sequence[int] | None = default, norm: str | None = None
    ) -> Tensor:
        where = f"ops.{name}"
        inverse, last, last_first = _KINDS[kind]
        return _transform(where, as_floats(where, input), s, dim, norm, inverse, last, last_first)

    return _transform_named(compute, name, "the axes `dim`, of `s` numbers each")


_DESCRIPTIONS: Final = {
    "fft": "The Fourier transform", "ifft": "The inverse Fourier transform",
    "rfft": "The Fourier transform of a real signal, the first half,",
    "irfft": "The real signal of the first half of its Fourier transform",
    "hfft": "The real Fourier transform of the first half of a Hermitian signal",
    "ihfft": "The inverse of the transform of a Hermitian signal, the first half,",
}


def _transform_named(compute: Callable[..., Tensor], name: str, axes: str) -> Callable[..., Tensor]:
    return named(compute, name, (
        f"{_DESCRIPTIONS[name.rstrip('2n') if name not in _DESCRIPTIONS else name]} of `input` along {axes}.\n\n"
        f"    `norm` is \"backward\" (the inverse is divided by n), \"ortho\" or \"forward\".\n\n"
        f"    Example: ``ops.{name}(x)``."
    ))


fft, ifft, rfft, irfft, hfft, ihfft = (_one_axis(name) for name in _KINDS)
fft2, ifft2, rfft2, irfft2, hfft2, ihfft2 = (_many_axes(f"{name}2", (-2, -1)) for name in _KINDS)
fftn, ifftn, rfftn, irfftn, hfftn, ihfftn = (_many_axes(f"{name}n", None) for name in _KINDS)


def fftfreq(n: int, d: float = 1.0, dtype: DTypeLike | None = None) -> Tensor:
    """The frequencies of `fft` of `n` samples with spacing `d`, of `dtype` (float32). Example: ``ops.fftfreq(4)``."""
    return backend.to_tensor(np.fft.fftfreq(n, d), float32 if dtype is None else as_dtype(dtype))


def rfftfreq(n: int, d: float = 1.0, dtype: DTypeLike | None = None) -> Tensor:
    """The frequencies of `rfft` of `n` samples with spacing `d`, of `dtype` (float32). Example: ``ops.rfftfreq(4)``."""
    return backend.to_tensor(np.fft.rfftfreq(n, d), float32 if dtype is None else as_dtype(dtype))


def _shifted(where: str, input: TensorLike, dim: int | Sequence[int] | None, sign: int) -> Tensor:
    x = tensor(where, input)
    axes = axes_of(where, dim, rank_of(x), name="dim")
    return roll(x, tuple(sign * (x.shape[axis] // 2) for axis in axes), axes)


def fftshift(input: TensorLike, dim: int | Sequence[int] | None = None) -> Tensor:
    """Move the frequency zero of `input` to the middle of `dim` (all axes). Example: ``ops.fftshift(x)``."""
    return _shifted("ops.fftshift", input, dim, 1)


def ifftshift(input: TensorLike, dim: int | Sequence[int] | None = None) -> Tensor:
    """Undo `fftshift` of `input` along `dim`. Example: ``ops.ifftshift(x)``."""
    return _shifted("ops.ifftshift", input, dim, -1)


def _windows(x: Tensor, window: Tensor | None, n_fft: int, hop_length: int, win_length: int, normalized: bool,
             onesided: bool) -> Tensor:
    """The transforms of the windows of a signal: frequencies by windows."""
    left = (n_fft - win_length) // 2
    weights = keras.ops.pad(window, [(left, n_fft - win_length - left)])
    count = (x.shape[-1] - n_fft) // hop_length + 1
    indices = np.arange(count)[:, None] * hop_length + np.arange(n_fft)
    frames = keras.ops.take(x, indices, axis=-1) * keras.ops.cast(weights, x.dtype)
    transform = _complex if not onesided or is_complex_tensor(frames) else _to_half
    spectra = transform("ops.stft", frames, n_fft, rank_of(frames) - 1, None, False)
    return keras.ops.swapaxes(spectra * n_fft**-0.5 if normalized else spectra, -1, -2)


def stft(
    x: TensorLike, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
    window: TensorLike | None = None, center: bool = True, pad_mode: str = "REFLECT", normalized: bool = False,
    onesided: bool | None = None, return_complex: bool | None = None,
) -> Tensor:
    """The Fourier transforms (..., frequencies, windows) of windows of a signal `x`, (length,) or (batch, length).

    Args:
        x: The signal.
        n_fft: The length of a window.
        hop_length: The distance between windows; a fourth of `n_fft` by default.
        win_length: The length of `window`; `n_fft` by default.
        window: Weights of a window; ones by default.
        center: Whether the signal is padded, so that windows are centered.
        pad_mode: "REFLECT", "CONSTANT" or "SYMMETRIC".
        normalized: Whether to divide by the root of `n_fft`.
        onesided: Whether to return the first half of the frequencies; by default for a real signal.
        return_complex: Whether to return complex numbers; else their real and imaginary parts on a new last axis.

    Example: ``ops.stft(x, 64)``.
    """
    where = "ops.stft"
    signal = as_floats(where, x)
    length = n_fft if win_length is None else win_length
    weights = keras.ops.ones((length,), "float32") if window is None else tensor(where, window)
    if center:
        widths = [(0, 0)] * (rank_of(signal) - 1) + [(n_fft // 2, n_fft // 2)]
        signal = keras.ops.pad(signal, widths, mode=pad_mode.lower())
    half = not is_complex_tensor(signal) if onesided is None else onesided
    hop_length = n_fft // 4 if hop_length is None else hop_length
    spectra = _windows(signal, weights, n_fft, hop_length, length, normalized, half)
    if return_complex is None:
        return_complex = is_complex_tensor(signal)
    return spectra if return_complex else view_as_real(spectra)


def _stft(x: Tensor, window: TensorLike, n_fft: int, hop_length: int, win_length: int, normalized: bool, onesided: bool,
          return_complex: bool) -> Tensor:
    return stft(x, n_fft, hop_length, win_length, window, False, "REFLECT", normalized, onesided, return_complex)


def _with_size(
    x: TensorLike, signal_ndim: int, inverse: bool, real: bool, norm: str, onesided: bool, signal_sizes: Any
) -> Tensor:
    """The transform of the last `signal_ndim` axes."""
    value = as_floats("ops.FFTWithSize", x)
    dim = tuple(range(rank_of(value) - signal_ndim, rank_of(value)))
    if not real or not onesided:
        output = (ifftn if inverse else fftn)(value, None, dim, norm)
        return keras.ops.real(output) if real and inverse else output
    return irfftn(value, tuple(signal_sizes) or None, dim, norm) if inverse else rfftn(value, None, dim, norm)


STFT = configured(
    "STFT", _stft, n_fft=REQUIRED, hop_length=REQUIRED, win_length=REQUIRED, normalized=REQUIRED, onesided=REQUIRED,
    return_complex=REQUIRED,
)
FFTWithSize = configured(
    "FFTWithSize", _with_size, signal_ndim=REQUIRED, inverse=REQUIRED, real=REQUIRED, norm="backward", onesided=True,
    signal_sizes=(),
)

"""PSNR, SSIM and MSSSIM are MindSpore's to six digits, and refuse images that do not fit."""

from __future__ import annotations

import numpy as np
import pytest

from mixtrain import Tensor, nn
from tests.backends import quick_every

RNG = np.random.RandomState(0)
CLEAN = RNG.rand(2, 3, 200, 210).astype(np.float32)
NOISY = np.clip(CLEAN + 0.1 * RNG.randn(*CLEAN.shape), 0, 1).astype(np.float32)


# Printed by MindSpore 2.10 for these images.
@quick_every(5)
@pytest.mark.parametrize(("cell", "expected"), [
    (nn.PSNR(), [20.499657, 20.485723]),
    (nn.SSIM(), [0.9459296, 0.9457299]),
    (nn.SSIM(2.0, filter_size=8, filter_sigma=1.0), [0.9436207, 0.9434006]),
    (nn.MSSSIM(), [0.9542207, 0.9540592]),
    (nn.MSSSIM(filter_size=7, power_factors=(0.5, 0.5)), [0.9458639, 0.94572026]),
])
def test_the_values_are_those_of_the_reference(cell: nn.Cell, expected: list[float]) -> None:
    np.testing.assert_allclose(cell(Tensor(CLEAN), Tensor(NOISY)).asnumpy(), expected, rtol=5e-6)


def test_integers_are_divided_by_the_maximum_of_their_dtype() -> None:
    images = (Tensor((values * 255).astype(np.uint8)) for values in (CLEAN, NOISY))
    np.testing.assert_allclose(nn.PSNR(255)(*images).asnumpy(), [20.49867, 20.48439], rtol=1e-6)


@pytest.mark.parametrize(("cell", "shape", "message"), [
    (nn.PSNR(), (2, 3, 8), "PSNR: the images must be of one dtype and one shape"),
    (nn.SSIM(), (1, 1, 8, 8), "SSIM: height and width must be at least filter_size, 11"),
    (nn.MSSSIM(), (1, 1, 32, 32), "MSSSIM: height and width must be at least filter_size, 11"),
])
def test_images_that_do_not_fit_are_refused(cell: nn.Cell, shape: tuple[int, ...], message: str) -> None:
    image = Tensor(np.ones(shape, np.float32))
    with pytest.raises(ValueError, match=message):
        cell(image, image)

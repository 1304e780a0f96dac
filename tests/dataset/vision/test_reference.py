"""Every transform gives MindSpore's numbers and dtypes."""

from __future__ import annotations

import numpy as np
import pytest

from tests.backends import quick_every
from tests.dataset.vision.cases import CASES, NAMES, REFERENCE, WRONG_THERE

# OpenCV and Pillow compute these in fixed point: one grey level of 256 off, nowhere more.
_FIXED_POINT = (
    "Resize", "pil_Resize", "RandomResizedCrop", "GaussianBlur", "Adjust", "Affine", "Rotate", "Random", "pil_Auto",
    "AutoContrast", "Perspective", "WithBBox",
)


@quick_every(17)
@pytest.mark.parametrize("name", sorted(set(NAMES) - set(WRONG_THERE)))
def test_a_transform_gives_the_numbers_of_mindspore(name):
    value, expected = REFERENCE[name]
    if name.startswith("pil_"):
        value = pytest.importorskip("PIL.Image").fromarray(value)
    result = np.asarray(CASES[name](value))
    assert result.dtype == expected.dtype
    assert result.shape == expected.shape
    level = 1.0 if expected.dtype == np.uint8 and name.startswith(_FIXED_POINT) else 1e-5
    np.testing.assert_allclose(result.astype(float), expected.astype(float), rtol=1e-5, atol=level)
    if level == 1.0:
        assert np.mean(result != expected) < 0.3


def test_every_case_of_the_reference_is_compared():
    assert sorted(CASES) == NAMES


def test_where_the_reference_is_wrong_the_meaning_holds():
    value, reference = REFERENCE["NormalizePad"]
    result = CASES["NormalizePad"](value)
    np.testing.assert_allclose(result[..., :3], REFERENCE["Normalize"][1], rtol=1e-6)
    assert not result[..., 3].any()
    assert reference[..., 3].any()
    value, reference = REFERENCE["OneHot_smooth"]
    np.testing.assert_allclose(CASES["OneHot_smooth"](value), np.eye(4)[value] * 0.9 + 0.025, rtol=1e-12)
    assert reference[0].max() == 0.025

"""Every transform gives MindSpore's numbers and dtypes."""

from __future__ import annotations

import numpy as np
import pytest

from tests.dataset.vision.cases import CASES, NAMES, REFERENCE, WRONG_THERE

# OpenCV and Pillow compute these in fixed point: one grey level of 256 off, nowhere more.
_FIXED_POINT = (
    "Resize", "pil_Resize", "RandomResizedCrop", "GaussianBlur", "Adjust", "Affine", "Rotate", "Random", "pil_Auto",
    "AutoContrast", "Perspective", "WithBBox",
)


@pytest.mark.parametrize("name", sorted(set(NAMES) - set(WRONG_THERE)))
def test_a_transform_gives_the_numbers_of_mindspore(name):
    given, expected = REFERENCE[name]
    if name.startswith("pil_"):
        given = pytest.importorskip("PIL.Image").fromarray(given)
    result = np.asarray(CASES[name](given))
    assert result.dtype == expected.dtype
    assert result.shape == expected.shape
    level = 1.0 if expected.dtype == np.uint8 and name.startswith(_FIXED_POINT) else 1e-5
    np.testing.assert_allclose(result.astype(float), expected.astype(float), rtol=1e-5, atol=level)
    if level == 1.0:
        assert np.mean(result != expected) < 0.3


def test_every_case_of_the_reference_is_compared():
    assert sorted(CASES) == NAMES


def test_where_the_reference_is_wrong_the_meaning_holds():
    given, there = REFERENCE["NormalizePad"]
    result = CASES["NormalizePad"](given)
    np.testing.assert_allclose(result[..., :3], REFERENCE["Normalize"][1], rtol=1e-6)
    assert not result[..., 3].any()
    assert there[..., 3].any()
    given, there = REFERENCE["OneHot_smooth"]
    np.testing.assert_allclose(CASES["OneHot_smooth"](given), np.eye(4)[given] * 0.9 + 0.025, rtol=1e-12)
    assert there[0].max() == 0.025

"""The transform of every case of the reference, and how far it may be from MindSpore's numbers."""

from __future__ import annotations

import pathlib

import numpy as np

from mixtrain.dataset import transforms, vision
from mixtrain.dataset.vision import Border, ConvertMode, Inter, SliceMode

_STORED = dict(np.load(pathlib.Path(__file__).parents[2] / "data" / "vision_reference.npz"))
REFERENCE = {
    key.removesuffix("/y"): (_STORED["input/" + str(_STORED[key.removesuffix("y") + "input"])], value)
    for key, value in _STORED.items()
    if key.endswith("/y")
}
NAMES = sorted(REFERENCE)
# Where the reference itself is wrong, and how one sees it.
WRONG_THERE = {
    "NormalizePad": "the zeros of the fourth channel come in a block at the end, and values are shifted",
    "OneHot_smooth": "of several labels only the last is smoothed; the others become vectors of equal small numbers",
}

MEAN, STD = [120.0, 110.0, 100.0], [60.0, 50.0, 40.0]
RGB = REFERENCE["Invert"][0]
BOXES = np.array([[1, 1, 3, 2, 7], [0, 0, 12, 9, 8], [9, 6, 3, 3, 9]], np.float32)
START, END = [[0, 8], [11, 8], [11, 0], [0, 0]], [[1, 6], [9, 8], [10, 1], [2, 0]]
WHITE = np.cos(np.arange(324.0 * 324.0)).reshape(324, 324)
FIXED = {
    "Horizontal": vision.RandomHorizontalFlipWithBBox(1.0),
    "Vertical": vision.RandomVerticalFlipWithBBox(1.0),
    "Resize": vision.ResizeWithBBox((14, 17), Inter.NEAREST),
    "ResizeEdge": vision.ResizeWithBBox(7),
    "Crop": vision.RandomCropWithBBox((13, 17), (1, 2, 4, 2), fill_value=(9, 8, 7)),
    "ResizedCrop": vision.RandomResizedCropWithBBox((6, 7), (1.0, 1.0), (12 / 9, 12 / 9)),
}
FIRST = int(REFERENCE["Invert"][0][0, 0, 0])

CASES = {
    "Decode_png": vision.Decode(),
    "Decode_bmp": vision.Decode(),
    "Decode_jpeg": vision.Decode(),
    "HWC2CHW": vision.HWC2CHW(),
    "HWC2CHW_flat": vision.HWC2CHW(),
    "Rescale": vision.Rescale(1.0 / 255.0, -0.3),
    "Rescale_float": vision.Rescale(1 / 0.3081, -0.1307 / 0.3081),
    "Normalize": vision.Normalize(MEAN, STD),
    "Normalize_one": vision.Normalize([120.0], [60.0]),
    "Normalize_flat": vision.Normalize([120.0], [60.0]),
    "Normalize_chw": vision.Normalize([0.1, 0.2, 0.3], [0.5, 0.6, 0.7], is_hwc=False),
    "NormalizePad": vision.NormalizePad(MEAN, STD),
    "ToTensor": vision.ToTensor(),
    "ToTensor_flat": vision.ToTensor(),
    "ToTensor_float16": vision.ToTensor(np.float16),
    "HorizontalFlip": vision.HorizontalFlip(),
    "VerticalFlip": vision.VerticalFlip(),
    "CenterCrop": vision.CenterCrop((4, 5)),
    "CenterCrop_odd": vision.CenterCrop(6),
    "CenterCrop_larger": vision.CenterCrop((12, 15)),
    "CenterCrop_mixed": vision.CenterCrop((14, 7)),
    "Crop": vision.Crop((2, 3), (4, 6)),
    "RandomCrop_whole": vision.RandomCrop((11, 14), padding=1),
    "RandomCrop_padded": vision.RandomCrop((14, 19), padding=(2, 1, 5, 4), fill_value=(9, 8, 7)),
    "RandomCrop_needed": vision.RandomCrop((9, 12), pad_if_needed=True),
    "RandomCrop_reflect": vision.RandomCrop((13, 16), padding=2, padding_mode=Border.REFLECT),
    "Pad_constant": vision.Pad((1, 2, 3, 4), (5, 6, 7)),
    "Pad_edge": vision.Pad((1, 2, 3, 4), padding_mode=Border.EDGE),
    "Pad_reflect": vision.Pad((1, 2), padding_mode=Border.REFLECT),
    "Pad_symmetric": vision.Pad(2, padding_mode=Border.SYMMETRIC),
    "PadToSize": vision.PadToSize((12, 15), fill_value=3),
    "PadToSize_offset": vision.PadToSize((12, 15), offset=(1, 2)),
    "ResizedCrop": vision.ResizedCrop(1, 2, 6, 7, (5, 9)),
    "Invert": vision.Invert(),
    "Equalize": vision.Equalize(),
    "AutoContrast": vision.AutoContrast(),
    "AutoContrast_cutoff": vision.AutoContrast(cutoff=10.0, ignore=[FIRST]),
    "Solarize": vision.Solarize((60, 150)),
    "Solarize_one": vision.Solarize(90.0),
    "RandomSolarize_fixed": vision.RandomSolarize((90, 90)),
    "Posterize": vision.Posterize(3),
    "RandomPosterize_fixed": vision.RandomPosterize((2, 2)),
    "AdjustBrightness": vision.AdjustBrightness(1.4),
    "AdjustContrast": vision.AdjustContrast(1.4),
    "AdjustSaturation": vision.AdjustSaturation(1.7),
    "AdjustHue": vision.AdjustHue(0.2),
    "AdjustSharpness": vision.AdjustSharpness(1.8),
    "RandomColorAdjust_fixed": vision.RandomColorAdjust(saturation=(1.2, 1.2)),
    "RandomColor_fixed": vision.RandomColor((0.4, 0.4)),
    "RandomSharpness_fixed": vision.RandomSharpness((0.3, 0.3)),
    "GaussianBlur": vision.GaussianBlur(3),
    "GaussianBlur_sigma": vision.GaussianBlur((5, 3), (1.2, 0.7)),
    "GaussianBlur_float": vision.GaussianBlur(3, 2.0),
    "Rotate_90": vision.Rotate(90),
    "Rotate_linear": vision.Rotate(30, Inter.BILINEAR),
    "Rotate_nearest": vision.Rotate(30),
    "Rotate_expand": vision.Rotate(30, Inter.BILINEAR, expand=True),
    # MindSpore fills with (9, 8, 7) in the order blue, green, red.
    "Rotate_center": vision.Rotate(-20, Inter.BILINEAR, center=(2, 3), fill_value=(7, 8, 9)),
    "RandomRotation_fixed": vision.RandomRotation((30, 30), Inter.BILINEAR),
    "Affine": vision.Affine(20.0, (0.1, -0.2), 1.2, (5.0, 8.0), Inter.BILINEAR),
    "RandomAffine_fixed": vision.RandomAffine((20, 20), (0.25, 0.25), (0.9, 0.9), (6, 6), Inter.BILINEAR),
    "Erase": vision.Erase(1, 2, 3, 4, (9, 8, 7)),
    "ConvertColor_rgb2bgr": vision.ConvertColor(ConvertMode.COLOR_RGB2BGR),
    "ConvertColor_rgb2gray": vision.ConvertColor(ConvertMode.COLOR_RGB2GRAY),
    "ConvertColor_bgr2gray": vision.ConvertColor(ConvertMode.COLOR_BGR2GRAY),
    "ConvertColor_rgba2bgr": vision.ConvertColor(ConvertMode.COLOR_RGBA2BGR),
    "ConvertColor_gray2rgb": vision.ConvertColor(ConvertMode.COLOR_GRAY2RGB),
    "ConvertColor_rgb2rgba": vision.ConvertColor(ConvertMode.COLOR_RGB2RGBA),
    "RgbToHsv": vision.RgbToHsv(is_hwc=True),
    "HsvToRgb": vision.HsvToRgb(is_hwc=True),
    "RandomResizedCrop_whole": vision.RandomResizedCrop((6, 7), (1.0, 1.0), (12 / 9, 12 / 9)),
    "TypeCast": transforms.TypeCast("int32"),
    "TypeCast_half": transforms.TypeCast("float16"),
    "OneHot": transforms.OneHot(4),
    "OneHot_one": transforms.OneHot(4),
    "OneHot_smooth": transforms.OneHot(4, 0.1),
    "Fill": transforms.Fill(7),
    "PadEnd": transforms.PadEnd([5], -1),
    "PadEnd_cut": transforms.PadEnd([2], -1),
    "Concatenate": transforms.Concatenate(0, np.array([9], np.int32), np.array([7, 8], np.int32)),
    "Mask": transforms.Mask(transforms.Relational.GE, 2),
    "Slice": transforms.Slice(slice(1, 3)),
    "pil_Resize_LINEAR": vision.Resize((5, 7), Inter.LINEAR),
    "pil_Resize_BICUBIC": vision.Resize((5, 7), Inter.BICUBIC),
    "pil_Resize_NEAREST": vision.Resize((5, 7), Inter.NEAREST),
    "pil_Resize_ANTIALIAS": vision.Resize((5, 7), Inter.ANTIALIAS),
    "pil_Resize_up": vision.Resize((14, 17), Inter.LINEAR),
    "pil_Resize_edge": vision.Resize(7),
    "pil_CenterCrop": vision.CenterCrop(6),
    "pil_Pad": vision.Pad((1, 2, 3, 4), (5, 6, 7)),
    "pil_Grayscale": vision.Grayscale(),
    "pil_Grayscale_3": vision.Grayscale(3),
    "pil_Equalize": vision.Equalize(),
    "pil_AutoContrast": vision.AutoContrast(),
    "pil_Invert": vision.Invert(),
    "pil_ToTensor": vision.ToTensor(),
    "pil_RandomHorizontalFlip": vision.RandomHorizontalFlip(1.0),
}
CASES |= {
    "AdjustGamma": vision.AdjustGamma(2.2, 1.1),
    "AdjustGamma_root": vision.AdjustGamma(0.5),
    "AdjustGamma_float": vision.AdjustGamma(1.7, 1.2),
    "LinearTransformation": vision.LinearTransformation(WHITE, np.linspace(-1.0, 1.0, 324)),
    "Perspective": vision.Perspective(START, END),
    "Perspective_float": vision.Perspective(END, START),
    "Perspective_nearest": vision.Perspective(START, END, Inter.NEAREST),
    "SlicePatches": lambda image: np.stack(vision.SlicePatches(2, 5, SliceMode.PAD, 7)(image)),
    "SlicePatches_drop": lambda image: np.stack(vision.SlicePatches(2, 5, SliceMode.DROP)(image)),
    "pil_FiveCrop": lambda image: np.stack([np.asarray(part) for part in vision.FiveCrop((4, 5))(image)]),
    "pil_TenCrop": lambda image: np.stack([np.asarray(part) for part in vision.TenCrop(4)(image)]),
    "pil_TenCrop_vertical": lambda image: np.stack([np.asarray(part) for part in vision.TenCrop(4, True)(image)]),
    "pil_Perspective": vision.Perspective(START, END, Inter.BICUBIC),
    **{f"WithBBox_{name}": (lambda image, op=op: op(image, BOXES)[0]) for name, op in FIXED.items()},
    **{f"WithBBox_{name}_boxes": (lambda boxes, op=op: op(RGB, boxes)[1]) for name, op in FIXED.items()},
}
_SIZES = {"up": (14, 17), "down": (5, 7), "mixed": (5, 19), "edge": 7}
CASES |= {
    name: vision.Resize(_SIZES[name.split("_")[3]], Inter[name.split("_")[2]])
    for name in NAMES
    if name.startswith("Resize_")
}

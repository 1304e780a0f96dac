"""Writes vision_reference.npz: images and labels transformed by MindSpore 2.10 on the CPU.

Keys read 'input/name', 'case/input' (such a name) and 'case/y'; the tests name each case's transform themselves.
MindSpore is needed to run this, not to run the tests. Usage: python make_vision_reference.py [output.npz]
"""

import io
import pathlib
import sys

import mindspore as ms
import mindspore.dataset.transforms as transforms
import mindspore.dataset.vision as vision
import numpy as np
from mindspore.dataset.vision import Border, ConvertMode, Inter, SliceMode
from PIL import Image

rng = np.random.default_rng(20261121)
coarse = rng.integers(0, 256, (3, 4, 3)).astype(np.float32)
RGB = np.clip(np.kron(coarse, np.ones((3, 3, 1))) + rng.normal(0, 20, (9, 12, 3)), 0, 255).astype(np.uint8)
FLOAT = rng.standard_normal((9, 12, 3)).astype(np.float32)
GREY = np.ascontiguousarray(RGB[..., :1])
FLAT = np.ascontiguousarray(RGB[..., 1])
RGBA = np.concatenate([RGB, GREY], axis=-1)
CHW = FLOAT.transpose(2, 0, 1).copy()
UNIT = rng.random((5, 4, 3)).astype(np.float32)
LABELS = np.array([2, 0, 3], np.int32)
MEAN, STD = [120.0, 110.0, 100.0], [60.0, 50.0, 40.0]
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


def encoded(kind):
    """Return the image as a file's contents."""
    stream = io.BytesIO()
    Image.fromarray(RGB).save(stream, kind)
    return np.frombuffer(stream.getvalue(), np.uint8)


CASES = {
    "Decode_png": (vision.Decode(), encoded("PNG")),
    "Decode_bmp": (vision.Decode(), encoded("BMP")),
    "Decode_jpeg": (vision.Decode(), encoded("JPEG")),
    "HWC2CHW": (vision.HWC2CHW(), RGB),
    "HWC2CHW_flat": (vision.HWC2CHW(), FLAT),
    "Rescale": (vision.Rescale(1.0 / 255.0, -0.3), RGB),
    "Rescale_float": (vision.Rescale(1 / 0.3081, -0.1307 / 0.3081), FLOAT),
    "Normalize": (vision.Normalize(MEAN, STD), RGB),
    "Normalize_one": (vision.Normalize([120.0], [60.0]), RGB),
    "Normalize_flat": (vision.Normalize([120.0], [60.0]), FLAT),
    "Normalize_chw": (vision.Normalize([0.1, 0.2, 0.3], [0.5, 0.6, 0.7], is_hwc=False), CHW),
    "NormalizePad": (vision.NormalizePad(MEAN, STD), RGB),
    "ToTensor": (vision.ToTensor(), RGB),
    "ToTensor_flat": (vision.ToTensor(), FLAT),
    "ToTensor_float16": (vision.ToTensor(np.float16), RGB),
    "HorizontalFlip": (vision.HorizontalFlip(), RGB),
    "VerticalFlip": (vision.VerticalFlip(), FLAT),
    "CenterCrop": (vision.CenterCrop((4, 5)), RGB),
    "CenterCrop_odd": (vision.CenterCrop(6), RGB),
    "CenterCrop_larger": (vision.CenterCrop((12, 15)), RGB),
    "CenterCrop_mixed": (vision.CenterCrop((14, 7)), RGB),
    "Crop": (vision.Crop((2, 3), (4, 6)), RGB),
    "RandomCrop_whole": (vision.RandomCrop((11, 14), padding=1), RGB),
    "RandomCrop_padded": (vision.RandomCrop((14, 19), padding=(2, 1, 5, 4), fill_value=(9, 8, 7)), RGB),
    "RandomCrop_needed": (vision.RandomCrop((9, 12), pad_if_needed=True), RGB),
    "RandomCrop_reflect": (vision.RandomCrop((13, 16), padding=2, padding_mode=Border.REFLECT), RGB),
    "Pad_constant": (vision.Pad((1, 2, 3, 4), (5, 6, 7)), RGB),
    "Pad_edge": (vision.Pad((1, 2, 3, 4), padding_mode=Border.EDGE), RGB),
    "Pad_reflect": (vision.Pad((1, 2), padding_mode=Border.REFLECT), RGB),
    "Pad_symmetric": (vision.Pad(2, padding_mode=Border.SYMMETRIC), FLOAT),
    "PadToSize": (vision.PadToSize((12, 15), fill_value=3), RGB),
    "PadToSize_offset": (vision.PadToSize((12, 15), offset=(1, 2)), RGB),
    "ResizedCrop": (vision.ResizedCrop(1, 2, 6, 7, (5, 9)), RGB),
    "Invert": (vision.Invert(), RGB),
    "Equalize": (vision.Equalize(), RGB),
    "AutoContrast": (vision.AutoContrast(), RGB),
    "AutoContrast_cutoff": (vision.AutoContrast(cutoff=10.0, ignore=[int(RGB[0, 0, 0])]), RGB),
    "Solarize": (vision.Solarize((60, 150)), RGB),
    "Solarize_one": (vision.Solarize(90.0), RGB),
    "RandomSolarize_fixed": (vision.RandomSolarize((90, 90)), RGB),
    "Posterize": (vision.Posterize(3), RGB),
    "RandomPosterize_fixed": (vision.RandomPosterize((2, 2)), RGB),
    "AdjustBrightness": (vision.AdjustBrightness(1.4), RGB),
    "AdjustContrast": (vision.AdjustContrast(1.4), RGB),
    "AdjustSaturation": (vision.AdjustSaturation(1.7), RGB),
    "AdjustHue": (vision.AdjustHue(0.2), RGB),
    "AdjustSharpness": (vision.AdjustSharpness(1.8), RGB),
    "RandomColorAdjust_fixed": (vision.RandomColorAdjust(saturation=(1.2, 1.2)), RGB),
    "RandomColor_fixed": (vision.RandomColor((0.4, 0.4)), RGB),
    "RandomSharpness_fixed": (vision.RandomSharpness((0.3, 0.3)), RGB),
    "GaussianBlur": (vision.GaussianBlur(3), RGB),
    "GaussianBlur_sigma": (vision.GaussianBlur((5, 3), (1.2, 0.7)), RGB),
    "GaussianBlur_float": (vision.GaussianBlur(3, 2.0), FLOAT),
    "Rotate_90": (vision.Rotate(90), RGB[:, :9].copy()),
    "Rotate_linear": (vision.Rotate(30, Inter.BILINEAR), RGB),
    "Rotate_nearest": (vision.Rotate(30), RGB),
    "Rotate_expand": (vision.Rotate(30, Inter.BILINEAR, expand=True), RGB),
    "Rotate_center": (vision.Rotate(-20, Inter.BILINEAR, center=(2, 3), fill_value=(9, 8, 7)), RGB),
    "RandomRotation_fixed": (vision.RandomRotation((30, 30), Inter.BILINEAR), RGB),
    "Affine": (vision.Affine(20.0, (0.1, -0.2), 1.2, (5.0, 8.0), Inter.BILINEAR), RGB),
    "RandomAffine_fixed": (
        vision.RandomAffine((20, 20), (0.25, 0.25), (0.9, 0.9), (6, 6), Inter.BILINEAR), RGB
    ),
    "Erase": (vision.Erase(1, 2, 3, 4, (9, 8, 7)), RGB),
    "ConvertColor_rgb2bgr": (vision.ConvertColor(ConvertMode.COLOR_RGB2BGR), RGB),
    "ConvertColor_rgb2gray": (vision.ConvertColor(ConvertMode.COLOR_RGB2GRAY), RGB),
    "ConvertColor_bgr2gray": (vision.ConvertColor(ConvertMode.COLOR_BGR2GRAY), RGB),
    "ConvertColor_rgba2bgr": (vision.ConvertColor(ConvertMode.COLOR_RGBA2BGR), RGBA),
    "ConvertColor_gray2rgb": (vision.ConvertColor(ConvertMode.COLOR_GRAY2RGB), GREY),
    "ConvertColor_rgb2rgba": (vision.ConvertColor(ConvertMode.COLOR_RGB2RGBA), RGB),
    "RgbToHsv": (vision.RgbToHsv(is_hwc=True), UNIT),
    "HsvToRgb": (vision.HsvToRgb(is_hwc=True), UNIT),
    "RandomResizedCrop_whole": (vision.RandomResizedCrop((6, 7), (1.0, 1.0), (12 / 9, 12 / 9)), RGB),
    "TypeCast": (transforms.TypeCast(ms.int32), FLOAT * 10),
    "TypeCast_half": (transforms.TypeCast(ms.float16), RGB),
    "OneHot": (transforms.OneHot(4), LABELS),
    "OneHot_one": (transforms.OneHot(4), np.array(2, np.int64)),
    "OneHot_smooth": (transforms.OneHot(4, 0.1), LABELS),
    "Fill": (transforms.Fill(7), LABELS),
    "PadEnd": (transforms.PadEnd([5], -1), LABELS),
    "PadEnd_cut": (transforms.PadEnd([2], -1), LABELS),
    "Concatenate": (transforms.Concatenate(0, np.array([9], np.int32), np.array([7, 8], np.int32)), LABELS),
    "Mask": (transforms.Mask(transforms.Relational.GE, 2), LABELS),
    "Slice": (transforms.Slice(slice(1, 3)), LABELS),
}
CASES |= {
    "AdjustGamma": (vision.AdjustGamma(2.2, 1.1), RGB),
    "AdjustGamma_root": (vision.AdjustGamma(0.5), FLAT),
    "AdjustGamma_float": (vision.AdjustGamma(1.7, 1.2), UNIT),
    "LinearTransformation": (vision.LinearTransformation(WHITE, np.linspace(-1.0, 1.0, 324)), FLOAT),
    "Perspective": (vision.Perspective(START, END), RGB),
    "Perspective_float": (vision.Perspective(END, START), FLOAT),
    "Perspective_nearest": (vision.Perspective(START, END, Inter.NEAREST), FLAT),
    "SlicePatches": (lambda image: np.stack(vision.SlicePatches(2, 5, SliceMode.PAD, 7)(image)), RGB),
    "SlicePatches_drop": (lambda image: np.stack(vision.SlicePatches(2, 5, SliceMode.DROP)(image)), FLAT),
    # Some of these write into the boxes.
    **{f"WithBBox_{name}": (lambda image, op=op: op(image, BOXES.copy())[0], RGB) for name, op in FIXED.items()},
    **{f"WithBBox_{name}_boxes": (lambda boxes, op=op: op(RGB, boxes.copy())[1], BOXES) for name, op in FIXED.items()},
}
for name, data in (("rgb", RGB), ("grey", GREY), ("flat", FLAT), ("float", FLOAT)):
    for method in ("NEAREST", "LINEAR", "BICUBIC", "AREA", "PILCUBIC"):
        if method == "PILCUBIC" and name != "rgb":
            continue
        for label, size in (("up", (14, 17)), ("down", (5, 7)), ("mixed", (5, 19)), ("edge", 7)):
            CASES[f"Resize_{name}_{method}_{label}"] = (vision.Resize(size, getattr(Inter, method)), data)
PICTURES = {
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
    "pil_FiveCrop": lambda image: np.stack([np.asarray(part) for part in vision.FiveCrop((4, 5))(image)]),
    "pil_TenCrop": lambda image: np.stack([np.asarray(part) for part in vision.TenCrop(4)(image)]),
    "pil_TenCrop_vertical": lambda image: np.stack([np.asarray(part) for part in vision.TenCrop(4, True)(image)]),
    "pil_Perspective": vision.Perspective(START, END, Inter.BICUBIC),
    "pil_RandomHorizontalFlip": vision.RandomHorizontalFlip(1.0),
}


def main(path):
    store, known = {}, {}

    def keep(case, data, result):
        name = known.setdefault((data.tobytes(), data.dtype, data.shape), f"{len(known)}")
        store[f"input/{name}"], store[f"{case}/input"], store[f"{case}/y"] = data, np.array(name), np.asarray(result)

    for case, (transform, data) in CASES.items():
        keep(case, data, transform(data))
    for case, transform in PICTURES.items():
        keep(case, RGB, transform(vision.ToPIL()(RGB)))
    np.savez_compressed(path, **store)
    print(len(CASES) + len(PICTURES), "cases", pathlib.Path(path).stat().st_size, "bytes")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).with_name("vision_reference.npz"))

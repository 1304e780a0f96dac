"""Transforms of images, with MindSpore's names."""

from mixtrain.dataset.vision import c_transforms, py_transforms
from mixtrain.dataset.vision.blur import AdjustSharpness, GaussianBlur, RandomAdjustSharpness, RandomSharpness
from mixtrain.dataset.vision.boxes import (
    BoundingBoxAugment, RandomCropWithBBox, RandomHorizontalFlipWithBBox, RandomResizedCropWithBBox,
    RandomResizeWithBBox, RandomVerticalFlipWithBBox, ResizeWithBBox,
)
from mixtrain.dataset.vision.color import (
    AdjustBrightness, AdjustContrast, AdjustHue, AdjustSaturation, RandomColor, RandomColorAdjust, RandomLighting,
)
from mixtrain.dataset.vision.convert import ConvertColor, Grayscale, HsvToRgb, RandomGrayscale, RgbToHsv
from mixtrain.dataset.vision.crop import CenterCrop, Crop, RandomCrop
from mixtrain.dataset.vision.enums import Border, ConvertMode, ImageBatchFormat, ImageReadMode, Inter, SliceMode
from mixtrain.dataset.vision.erase import CutOut, Erase, RandomErasing
from mixtrain.dataset.vision.files import (
    encode_jpeg, encode_png, get_image_num_channels, get_image_size, read_file, read_image, write_file, write_jpeg,
    write_png,
)
from mixtrain.dataset.vision.flip import HorizontalFlip, RandomHorizontalFlip, RandomVerticalFlip, VerticalFlip
from mixtrain.dataset.vision.layout import HWC2CHW, Decode, ToNumpy, ToPIL, ToTensor, ToType
from mixtrain.dataset.vision.mix import CutMixBatch, MixUp, MixUpBatch
from mixtrain.dataset.vision.pad import Pad, PadToSize
from mixtrain.dataset.vision.parts import FiveCrop, SlicePatches, TenCrop
from mixtrain.dataset.vision.perspective import Perspective, RandomPerspective
from mixtrain.dataset.vision.policy import RandomSelectSubpolicy, UniformAugment
from mixtrain.dataset.vision.random_resized_crop import RandomCropDecodeResize, RandomResizedCrop
from mixtrain.dataset.vision.resize import RandomResize, Resize, ResizedCrop
from mixtrain.dataset.vision.rotate import Affine, RandomAffine, RandomRotation, Rotate
from mixtrain.dataset.vision.scale import LinearTransformation, Normalize, NormalizePad, Rescale
from mixtrain.dataset.vision.tone import (
    AdjustGamma, AutoContrast, Equalize, Invert, Posterize, RandomAutoContrast, RandomEqualize, RandomInvert,
    RandomPosterize, RandomSolarize, Solarize,
)
from mixtrain.lazy_names import serve_names

__all__ = [
    "AdjustBrightness", "AdjustContrast", "AdjustGamma", "AdjustHue", "AdjustSaturation", "AdjustSharpness", "Affine",
    "AutoContrast", "Border", "BoundingBoxAugment", "CenterCrop", "ConvertColor", "ConvertMode", "Crop", "CutMixBatch",
    "CutOut", "Decode", "Equalize", "Erase", "FiveCrop", "GaussianBlur", "Grayscale", "HWC2CHW", "HorizontalFlip",
    "HsvToRgb", "ImageBatchFormat", "ImageReadMode", "Inter", "Invert", "LinearTransformation", "MixUp", "MixUpBatch",
    "Normalize", "NormalizePad", "Pad", "PadToSize", "Perspective", "Posterize", "RandomAdjustSharpness",
    "RandomAffine", "RandomAutoContrast", "RandomColor", "RandomColorAdjust", "RandomCrop", "RandomCropDecodeResize",
    "RandomCropWithBBox", "RandomEqualize", "RandomErasing", "RandomGrayscale", "RandomHorizontalFlip",
    "RandomHorizontalFlipWithBBox", "RandomInvert", "RandomLighting", "RandomPerspective", "RandomPosterize",
    "RandomResize", "RandomResizeWithBBox", "RandomResizedCrop", "RandomResizedCropWithBBox", "RandomRotation",
    "RandomSelectSubpolicy", "RandomSharpness", "RandomSolarize", "RandomVerticalFlip", "RandomVerticalFlipWithBBox",
    "Rescale", "Resize", "ResizeWithBBox", "ResizedCrop", "RgbToHsv", "Rotate", "SliceMode", "SlicePatches", "Solarize",
    "TenCrop", "ToNumpy", "ToPIL", "ToTensor", "ToType", "UniformAugment", "VerticalFlip", "c_transforms",
    "encode_jpeg", "encode_png", "get_image_num_channels", "get_image_size", "py_transforms", "read_file", "read_image",
    "write_file", "write_jpeg", "write_png",
]


serve_names(__name__)

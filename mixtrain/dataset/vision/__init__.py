"""Transforms of images, with MindSpore's names."""

from mixtrain.dataset.vision import c_transforms, py_transforms
from mixtrain.dataset.vision.blur import AdjustSharpness, GaussianBlur, RandomAdjustSharpness, RandomSharpness
from mixtrain.dataset.vision.color import (
    AdjustBrightness,
    AdjustContrast,
    AdjustHue,
    AdjustSaturation,
    RandomColor,
    RandomColorAdjust,
    RandomLighting,
)
from mixtrain.dataset.vision.convert import ConvertColor, Grayscale, HsvToRgb, RandomGrayscale, RgbToHsv
from mixtrain.dataset.vision.crop import CenterCrop, Crop, RandomCrop
from mixtrain.dataset.vision.enums import Border, ConvertMode, Inter
from mixtrain.dataset.vision.erase import CutOut, Erase, RandomErasing
from mixtrain.dataset.vision.flip import HorizontalFlip, RandomHorizontalFlip, RandomVerticalFlip, VerticalFlip
from mixtrain.dataset.vision.layout import HWC2CHW, Decode, ToNumpy, ToPIL, ToTensor, ToType
from mixtrain.dataset.vision.pad import Pad, PadToSize
from mixtrain.dataset.vision.policy import RandomSelectSubpolicy, UniformAugment
from mixtrain.dataset.vision.random_resized_crop import RandomCropDecodeResize, RandomResizedCrop
from mixtrain.dataset.vision.resize import RandomResize, Resize, ResizedCrop
from mixtrain.dataset.vision.rotate import Affine, RandomAffine, RandomRotation, Rotate
from mixtrain.dataset.vision.scale import Normalize, NormalizePad, Rescale
from mixtrain.dataset.vision.tone import (
    AutoContrast,
    Equalize,
    Invert,
    Posterize,
    RandomAutoContrast,
    RandomEqualize,
    RandomInvert,
    RandomPosterize,
    RandomSolarize,
    Solarize,
)

__all__ = [
    "AdjustBrightness",
    "AdjustContrast",
    "AdjustHue",
    "AdjustSaturation",
    "AdjustSharpness",
    "Affine",
    "AutoContrast",
    "Border",
    "CenterCrop",
    "ConvertColor",
    "ConvertMode",
    "Crop",
    "CutOut",
    "Decode",
    "Equalize",
    "Erase",
    "GaussianBlur",
    "Grayscale",
    "HWC2CHW",
    "HorizontalFlip",
    "HsvToRgb",
    "Inter",
    "Invert",
    "Normalize",
    "NormalizePad",
    "Pad",
    "PadToSize",
    "Posterize",
    "RandomAdjustSharpness",
    "RandomAffine",
    "RandomAutoContrast",
    "RandomColor",
    "RandomColorAdjust",
    "RandomCrop",
    "RandomCropDecodeResize",
    "RandomEqualize",
    "RandomErasing",
    "RandomGrayscale",
    "RandomHorizontalFlip",
    "RandomInvert",
    "RandomLighting",
    "RandomPosterize",
    "RandomResize",
    "RandomResizedCrop",
    "RandomRotation",
    "RandomSelectSubpolicy",
    "RandomSharpness",
    "RandomSolarize",
    "RandomVerticalFlip",
    "Rescale",
    "Resize",
    "ResizedCrop",
    "RgbToHsv",
    "Rotate",
    "Solarize",
    "ToNumpy",
    "ToPIL",
    "ToTensor",
    "ToType",
    "UniformAugment",
    "VerticalFlip",
    "c_transforms",
    "py_transforms",
]

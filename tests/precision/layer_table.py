"""How every layer class that `keras.layers` exports is built: what it takes, and which take no part, and why."""

from __future__ import annotations

import dataclasses
import functools
import tempfile
from collections.abc import Callable
from typing import Any

import keras
import numpy as np

from tests.backends import ON_TENSORFLOW

L = keras.layers
BATCH = 2


def _doubled(inputs: Any) -> Any:
    return 2 * inputs


# The inputs by name: shape without the batch, the numbers below which they lie, and their dtype.
INPUTS: dict[str, tuple[tuple[int, ...], float, str]] = {
    "vector": ((6,), 1, "float32"),
    "sequence": ((4, 6), 1, "float32"),
    "volume": ((4, 4, 4, 2), 1, "float32"),
    "lines": ((2, 4, 2), 1, "float32"),
    "films": ((2, 3, 4, 2), 1, "float32"),
    "bodies": ((2, 3, 3, 3, 2), 1, "float32"),
    "image": ((8, 8, 3), 1, "float32"),
    "picture": ((8, 8, 3), 255, "float32"),
    "wave": ((32,), 1, "float32"),
    "words": ((4,), 7, "int32"),
    "text": ((4,), 7, "string"),
}
# What no layer stands before: data that a network takes as it is.
AS_THEY_ARE = ("picture", "wave", "words", "text")
# Inputs that one network takes; each class is a branch of it.
GROUPS = {
    "rows": ("vector", "sequence"),
    "fields": ("volume", "lines", "films", "bodies"),
    "images": ("image",),
    "pictures": ("picture", "wave"),
    "tokens": ("words", "text"),
}


@dataclasses.dataclass(frozen=True)
class Entry:
    """One layer, or a few, in a network.

    Attributes:
        classes: Names of the classes that it is about.
        takes: The name of its input.
        apply: Takes the input, calls the layer, returns a tensor.
    """

    classes: tuple[str, ...]
    takes: str
    apply: Callable[[Any], Any]


def _one(takes: str, name: str, *args: Any, **options: Any) -> Entry:
    """Return the entry of a layer that takes one tensor."""
    return Entry((name,), takes, lambda x: getattr(L, name)(*args, **options)(x))


def _two(name: str, takes: str = "vector", **options: Any) -> Entry:
    """Return the entry of a layer that takes a list of two tensors alike."""
    return Entry((name,), takes, lambda x: getattr(L, name)(**options)([x, x]))


def _each(takes: str, names: str, *args: Any, **options: Any) -> list[Entry]:
    return [_one(takes, name, *args, **options) for name in names.split()]


class Doubled(keras.layers.Layer):
    """A layer of a user's own."""

    def call(self, inputs: Any) -> Any:
        return 2 * inputs


class Wrapped(keras.layers.Wrapper):
    """A wrapper of a user's own."""

    def call(self, inputs: Any) -> Any:
        return self.layer(inputs)


def _recurrent(cell: str) -> Entry:
    return Entry(("RNN", cell), "sequence", lambda x: L.RNN(getattr(L, cell)(2))(x))


def _stacked(x: Any) -> Any:
    return L.RNN(L.StackedRNNCells([L.LSTMCell(2), L.GRUCell(3)]))(x)


def _adapted(name: str, data: Any, **options: Any) -> Callable[[Any], Any]:
    """Return what applies a layer that has seen some data."""

    def apply(x: Any) -> Any:
        layer = getattr(L, name)(**options)
        layer.adapt(np.array(data))
        return layer(x)

    return apply


def _mixed(name: str) -> Callable[[Any], Any]:
    """Return what applies a layer that mixes images and their labels."""

    def apply(x: Any) -> Any:
        labels = keras.ops.cast(keras.ops.mean(x, axis=(1, 2)), "float32")
        result = getattr(L, name)(data_format="channels_last")({"images": x, "labels": labels})
        return L.Concatenate()([L.Flatten()(result["images"]), result["labels"]])

    return apply


def _boxes(x: Any) -> Any:
    boxes = keras.ops.reshape(keras.ops.mean(x, axis=-1), (-1, 16, 4))
    labels = keras.ops.mean(boxes, axis=-1)
    layer = L.MaxNumBoundingBoxes(4, bounding_box_format="xyxy")
    return layer({"images": x, "bounding_boxes": {"boxes": boxes, "labels": labels}})["bounding_boxes"]["boxes"]


def _embedded_twice(x: Any) -> Any:
    layer = L.ReversibleEmbedding(7, 3)
    return layer(layer(x), reverse=True)


def _crossed(mode: str, x: Any) -> Any:
    return L.HashedCrossing(5, output_mode=mode)((x[:, :1], x[:, 1:2]))


def _saved(x: Any) -> Any:
    folder = tempfile.mkdtemp()
    keras.Sequential([keras.Input(x.shape[1:]), L.Dense(3)]).export(folder, verbose=False)
    return L.TFSMLayer(folder, call_endpoint="serve")(x)


REFUSED_ON_JAX = {
    "MaxNumBoundingBoxes": _boxes, "RandomCrop": lambda x: L.RandomCrop(4, 4)(x),
    "RandomElasticTransform": lambda x: L.RandomElasticTransform(0.5)(x),
}

_SPATIAL = [
    *_each("sequence", "AveragePooling1D MaxPooling1D", 2), _one("sequence", "SpatialDropout1D", 0.5),
    *_each("sequence", "GlobalAveragePooling1D GlobalMaxPooling1D"),
    *_each("sequence", "Conv1D Conv1DTranspose SeparableConv1D", 3, 2), _one("sequence", "DepthwiseConv1D", 2),
    *_each("sequence", "Cropping1D UpSampling1D ZeroPadding1D"),
    *_each("sequence", "AdaptiveAveragePooling1D AdaptiveMaxPooling1D", 2),
    *_each("image", "AveragePooling2D MaxPooling2D", 2), _one("image", "SpatialDropout2D", 0.5),
    *_each("image", "GlobalAveragePooling2D GlobalMaxPooling2D"),
    *_each("image", "Conv2D Conv2DTranspose SeparableConv2D", 3, 2), _one("image", "DepthwiseConv2D", 2),
    *_each("image", "Cropping2D ZeroPadding2D", 1),
    *(_one("image", "UpSampling2D", interpolation=way) for way in ("nearest", "bilinear", "bicubic")),
    *_each("image", "AdaptiveAveragePooling2D AdaptiveMaxPooling2D", 2),
    *_each("volume", "AveragePooling3D MaxPooling3D", 2), _one("volume", "SpatialDropout3D", 0.5),
    *_each("volume", "GlobalAveragePooling3D GlobalMaxPooling3D"),
    *_each("volume", "Conv3D Conv3DTranspose", 3, 2), *_each("volume", "Cropping3D UpSampling3D ZeroPadding3D", 1),
    *_each("volume", "AdaptiveAveragePooling3D AdaptiveMaxPooling3D", 2),
]

_PICTURES = [
    *_each("picture", "AugMix AutoContrast Equalization RandAugment RandomErasing"),
    _one("picture", "RandomPosterization", 4),
    _one("picture", "ContrastLimitedAdaptiveHistogramEqualization", tile_grid_size=(2, 2)),
    _one("picture", "CenterCrop", 4, 4), _one("picture", "Solarization"),
    *_each("picture", "RandomBrightness RandomContrast RandomGrayscale RandomInvert", 0.5),
    *_each("picture", "RandomHue RandomSaturation RandomSharpness RandomColorDegeneration", 0.5),
    *_each("picture", "RandomFlip RandomPerspective RandomGaussianBlur RandomColorJitter"),
    *_each("picture", "RandomRotation RandomZoom", 0.2), _one("picture", "RandomShear", 0.2, 0.2),
    _one("picture", "RandomTranslation", 0.2, 0.2), _one("picture", "Rescaling", 1 / 255),
    *(_one("picture", "Resizing", 4, 4, interpolation=way) for way in ("nearest", "bilinear", "bicubic", "lanczos3")),
    *(Entry((name,), "picture", _mixed(name)) for name in ("CutMix", "MixUp")),
    Entry(("Pipeline",), "picture", lambda x: L.Pipeline([L.RandomFlip(), L.Rescaling(1 / 255)])(x)),
    _one("wave", "MelSpectrogram", fft_length=16, sequence_stride=8, num_mel_bins=4, sampling_rate=100, max_freq=50),
    Entry(("STFTSpectrogram",), "wave", lambda x: L.STFTSpectrogram(
        frame_length=8, frame_step=4, fft_length=8)(L.Reshape((32, 1))(x))),
]

ENTRIES: list[Entry] = [
    *_each("vector", "Dropout AlphaDropout GaussianDropout GaussianNoise", 0.5), _one("vector", "Activation", "gelu"),
    *_each("vector", "ELU Flatten Identity LeakyReLU PReLU ReLU Softmax BatchNormalization"),
    *_each("vector", "LayerNormalization RMSNormalization UnitNormalization"), _one("vector", "GroupNormalization", 2),
    Entry(("Normalization",), "vector", _adapted("Normalization", [[1.0] * 6, [3.0] * 6])),
    Entry(("SpectralNormalization",), "vector", lambda x: L.SpectralNormalization(L.Dense(3))(x)),
    _one("vector", "ActivityRegularization", l2=0.1), _one("vector", "Dense", 3, "tanh"),
    _one("sequence", "EinsumDense", "abc,cd->abd", (4, 3)), _one("vector", "RepeatVector", 2),
    _one("vector", "Reshape", (2, 3)), _one("sequence", "Permute", (2, 1)), _one("sequence", "Masking"),
    Entry(("Lambda",), "vector", lambda x: L.Lambda(lambda inputs: inputs * 2)(x)),
    Entry(("Layer",), "vector", lambda x: Doubled()(x)),
    Entry(("Wrapper",), "vector", lambda x: Wrapped(L.Dense(3))(x)),
    *map(_two, "Add Average Concatenate Maximum Minimum Multiply Subtract".split()), _two("Dot", axes=1),
    *(_two(name, "sequence") for name in ("Attention", "AdditiveAttention")),
    Entry(("MultiHeadAttention",), "sequence", lambda x: L.MultiHeadAttention(2, 3)(x, x)),
    Entry(("GroupQueryAttention",), "sequence", lambda x: L.GroupQueryAttention(4, 4, 2)(x, x)),
    *_each("sequence", "LSTM GRU SimpleRNN", 2), *map(_recurrent, ("LSTMCell", "GRUCell", "SimpleRNNCell")),
    Entry(("StackedRNNCells",), "sequence", _stacked),
    Entry(("Bidirectional",), "sequence", lambda x: L.Bidirectional(L.LSTM(2))(x)),
    Entry(("TimeDistributed",), "sequence", lambda x: L.TimeDistributed(L.Dense(2))(x)),
    _one("lines", "ConvLSTM1D", 2, 2), _one("films", "ConvLSTM2D", 2, 2), _one("bodies", "ConvLSTM3D", 2, 2),
    *_SPATIAL, *_PICTURES,
    _one("words", "Embedding", 7, 3), Entry(("ReversibleEmbedding",), "words", _embedded_twice),
    *(_one("words", "CategoryEncoding", 7, mode) for mode in ("multi_hot", "count")),
    *(_one("words", "Discretization", [2.0, 4.0], output_mode=mode) for mode in ("int", "one_hot")),
]
if ON_TENSORFLOW:
    ENTRIES += [
        Entry(("IntegerLookup",), "words", _adapted("IntegerLookup", [[1, 2, 3]], output_mode="multi_hot")),
        _one("words", "Hashing", 5), _one("words", "Hashing", 5, output_mode="multi_hot"),
        *(Entry(("HashedCrossing",), "words", functools.partial(_crossed, mode)) for mode in ("int", "one_hot")),
        Entry(("StringLookup",), "text", _adapted("StringLookup", [["a", "b", "c"]], output_mode="multi_hot")),
        Entry(("TextVectorization",), "text", lambda x: _adapted(
            "TextVectorization", ["a b c"], output_sequence_length=3)(x[:, :1])),
        Entry(("TFSMLayer",), "vector", _saved),
        *(Entry((name,), "picture", apply) for name, apply in REFUSED_ON_JAX.items()),
    ]
else:
    ENTRIES += [Entry(("JaxLayer",), "vector", lambda x: L.JaxLayer(_doubled)(x))]

ENTRIES += [*_each("vector", "TernaryDense", 3), *_each("picture", "Mosaic")]  # Keras 3.16 has them besides.
ENTRIES = [entry for entry in ENTRIES if all(hasattr(L, name) for name in entry.classes)]  # Older ones have fewer.

# What Keras fails with for a layer under one of its own mixed policies: which (None for both), and a part of its words.
KERAS_FAILS: dict[str, tuple[str | None, str]] = {
    "CutMix": (None, "dtype"), "MixUp": (None, "does not match type float32"),
    "RandomElasticTransform": ("mixed_float16", "Range"), "RandomErasing": ("mixed_float16", "Range"),
    "RandomGaussianBlur": ("mixed_float16", "Range"), "STFTSpectrogram": ("mixed_bfloat16", "Invalid input type"),
    "TFSMLayer": (None, "Binding inputs to tf.function failed"),
}

# Exported classes that no entry is about.
LEFT_OUT = {
    "InputLayer": "the start of a functional model; a plan leaves it out",
    "InputSpec": "no layer: what a layer expects of its inputs",
    "FlaxLayer": "needs Flax",
    "TorchModuleWrapper": "needs PyTorch",
    **({"JaxLayer": "a function of JAX's, which TensorFlow runs as its own code"} if ON_TENSORFLOW else {
        "TFSMLayer": "a function of TensorFlow's",
        **dict.fromkeys(
            ("IntegerLookup", "Hashing", "HashedCrossing", "StringLookup", "TextVectorization"),
            "Keras computes it by TensorFlow, in the data set",
        ),
        **dict.fromkeys(REFUSED_ON_JAX, "Keras asks tensors for their values in it, which JAX does not compile"),
    }),
}


def group_of(entry: Entry) -> str:
    """Return the name of the network that an entry is a branch of."""
    return next(name for name, inputs in GROUPS.items() if entry.takes in inputs)


def network_of(entries: list[Entry]) -> keras.Model:
    """Return a network with a branch for each entry, whose means one dense layer weighs."""
    inputs = {name: keras.Input(INPUTS[name][0], name=name, dtype=INPUTS[name][2]) for name in _taken(entries)}
    fronts = {
        name: x if name in AS_THEY_ARE else L.Dense(x.shape[-1], name=f"front_{name}")(x)
        for name, x in inputs.items()
    }
    ends = [_mean(entry.apply(fronts[entry.takes])) / INPUTS[entry.takes][1] for entry in entries]
    taken = list(inputs.values())
    return keras.Model(taken if len(taken) > 1 else taken[0], L.Dense(2, name="head")(keras.ops.stack(ends, axis=-1)))


def _mean(x: Any) -> Any:
    """Return the mean of each sample; what Keras says of an output's shape beforehand is not always so."""
    x = x if "float" in x.dtype else keras.ops.cast(x, "float32")
    return keras.ops.mean(x, axis=tuple(range(1, len(x.shape))))


def _taken(entries: list[Entry]) -> list[str]:
    return [name for name in INPUTS if any(entry.takes == name for entry in entries)]


def batch_of(entries: list[Entry]) -> tuple[list[Any], Any]:
    """Return a batch of inputs and labels, the same ones every time."""
    rng = np.random.default_rng(0)
    inputs: list[Any] = []
    for name in _taken(entries):
        shape, limit, dtype = INPUTS[name]
        values = rng.uniform(0, limit, (BATCH, *shape))
        if dtype == "string":
            inputs.append(np.array(list("abcdefg"))[values.astype(int)])
        else:
            inputs.append(values.astype(dtype))
    return inputs, rng.uniform(0, 1, (BATCH, 2)).astype(np.float32)

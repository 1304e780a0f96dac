"""Transforms of data: composition, images, casts and labels, and functions of the user's own."""

import numpy as np

import mindspore
from mindspore.dataset import GeneratorDataset, NumpySlicesDataset, transforms, vision

# ---- a pipeline of images ----
generator = np.random.default_rng(5)
pictures = generator.integers(0, 256, (12, 28, 28, 1), dtype=np.uint8)
digits = (np.arange(12) % 10).astype(np.int32)


def read():
    return NumpySlicesDataset((pictures, digits), column_names=["image", "label"], shuffle=False)


image, label = next(read().create_tuple_iterator())
print(image.shape)
assert image.shape == (28, 28, 1) and label.shape == ()

composed = transforms.Compose([
    vision.Rescale(1.0 / 255.0, 0),
    vision.Normalize(mean=(0.1307,), std=(0.3081,)),
    vision.HWC2CHW(),
])
dataset = read().map(composed, "image")
image, label = next(dataset.create_tuple_iterator())
print(image.shape, image.dtype)
assert image.shape == (1, 28, 28) and image.dtype == mindspore.float32
expected = (pictures[0].astype(np.float32) / 255.0 - 0.1307) / 0.3081
np.testing.assert_allclose(image.asnumpy(), expected.transpose(2, 0, 1), rtol=1e-4, atol=1e-5)

# ---- one transform at a time, applied to arrays ----
noise = generator.integers(0, 255, size=(32, 32)).astype(np.uint8)
rescaled = vision.Rescale(1.0 / 255.0, 0)(noise)
print(rescaled.dtype, rescaled.shape)
assert rescaled.dtype == np.float32 and rescaled.shape == (32, 32)
np.testing.assert_allclose(rescaled, noise / np.float32(255.0), rtol=1e-6)

normalized = vision.Normalize(mean=(0.5,), std=(0.25,))(rescaled[..., None])
np.testing.assert_allclose(normalized[..., 0], (rescaled - 0.5) / 0.25, rtol=1e-5, atol=1e-6)
moved = vision.HWC2CHW()(normalized)
print(normalized.shape, moved.shape)
assert normalized.shape == (32, 32, 1) and moved.shape == (1, 32, 32)

resized = vision.Resize((16, 16))(pictures[1])
assert resized.shape[:2] == (16, 16) and resized.dtype == np.uint8
assert vision.CenterCrop(10)(pictures[1]).shape[:2] == (10, 10)
np.testing.assert_array_equal(vision.CenterCrop(10)(pictures[1]).reshape(10, 10), pictures[1, 9:19, 9:19, 0])
flipped = vision.RandomHorizontalFlip(prob=1.0)(pictures[2])
np.testing.assert_array_equal(flipped.reshape(28, 28), pictures[2, :, ::-1, 0])
assert vision.Pad([1, 2, 3, 4])(np.zeros((5, 5, 3), np.uint8)).shape == (11, 9, 3)

# ---- casts and labels ----
cast = transforms.TypeCast(mindspore.float32)(np.array([1, 2, 3]))
assert cast.dtype == np.float32
np.testing.assert_array_equal(transforms.OneHot(4)(np.array(2)), [0, 0, 1, 0])
labelled = read().map(transforms.OneHot(10), input_columns="label")
label = next(labelled.create_tuple_iterator())[1]
print(label)
assert label.shape == (10,) and int(label.argmax()) == 0 and int(label.sum()) == 1

# ---- words: a table of words and numbers ----
sentences = [[4, 8], [15, 16, 23]]
padded = GeneratorDataset(
    lambda: ((np.array(sentence, np.int32),) for sentence in sentences), column_names=["words"], shuffle=False
)
padded = padded.map(transforms.PadEnd([4], 0), input_columns="words")
assert [row[0].asnumpy().tolist() for row in padded] == [[4, 8, 0, 0], [15, 16, 23, 0]]
np.testing.assert_array_equal(transforms.Fill(7)(np.zeros(3, np.int32)), [7, 7, 7])
np.testing.assert_array_equal(transforms.Concatenate(append=np.array([9]))(np.array([1, 2])), [1, 2, 9])


# ---- functions of one's own: lambda, function, a class that is called ----
def numbers():
    for number in range(5):
        yield (np.array([number], np.float32),)


doubled = GeneratorDataset(numbers, ["x"], shuffle=False).map(lambda x: x * 2, input_columns="x")
assert [float(x[0]) for x in doubled.create_tuple_iterator()] == [0.0, 2.0, 4.0, 6.0, 8.0]


def square_plus_two(x):
    return x * x + 2


squared = GeneratorDataset(numbers, ["x"], shuffle=False).map([square_plus_two], ["x"])
for x in squared.create_tuple_iterator():
    print(x)
assert [float(x[0]) for x in squared.create_tuple_iterator()] == [2.0, 3.0, 6.0, 11.0, 18.0]


class Shift:
    """Adds a number that is fixed when it is made."""

    def __init__(self, amount):
        self.amount = amount

    def __call__(self, x):
        return x + self.amount


shifted = GeneratorDataset(numbers, ["x"], shuffle=False).map([Shift(10), square_plus_two], ["x"])
assert [float(x[0]) for x in shifted.create_tuple_iterator()] == [102.0, 123.0, 146.0, 171.0, 198.0]

mindspore.set_seed(1)
either = transforms.RandomChoice([Shift(np.float32(1)), Shift(np.float32(5))])
assert float(either(np.zeros(1, np.float32))[0]) in (1.0, 5.0)
always = transforms.RandomApply([Shift(np.float32(1))], prob=1.0)
assert float(always(np.zeros(1, np.float32))[0]) == 1.0

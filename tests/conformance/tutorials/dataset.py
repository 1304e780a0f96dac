"""Datasets: random access, iterables and generators, iterators, and the operations of a pipeline."""

import numpy as np

import mindspore
from mindspore.dataset import GeneratorDataset, NumpySlicesDataset, transforms

# ---- a source with random access ----


class Squares:
    """Row i is (i, i * i)."""

    def __init__(self, count):
        self._inputs = np.arange(count, dtype=np.float32).reshape(count, 1)

    def __getitem__(self, index):
        return self._inputs[index], self._inputs[index] ** 2

    def __len__(self):
        return len(self._inputs)


dataset = GeneratorDataset(source=Squares(6), column_names=["number", "square"], shuffle=False)
assert dataset.get_dataset_size() == 6 and dataset.get_col_names() == ["number", "square"]
for number, square in dataset:
    print(number, square, number.dtype, number.shape)
    assert isinstance(number, mindspore.Tensor) and number.shape == (1,) and number.dtype == mindspore.float32
    assert float(square) == float(number) ** 2

# ---- an iterable and a generator function ----


class Countdown:
    """Yields three, two, one."""

    def __init__(self):
        self._left = 3

    def __next__(self):
        if self._left == 0:
            raise StopIteration
        self._left -= 1
        return (np.array(self._left + 1, np.int64),)

    def __iter__(self):
        self._left = 3
        return self


def letters():
    for code in range(97, 100):
        yield np.array([code], np.int32), np.array([code - 97], np.int32)


counted = [int(row[0]) for row in GeneratorDataset(Countdown(), ["left"]).create_tuple_iterator()]
assert counted == [3, 2, 1]
pairs = [(int(code), int(place)) for code, place in GeneratorDataset(letters, ["code", "place"], shuffle=False)]
assert pairs == [(97, 0), (98, 1), (99, 2)]

# ---- slices of arrays, and the ways to iterate ----
images = np.arange(8 * 4 * 4, dtype=np.uint8).reshape(8, 4, 4, 1)
labels = np.array([0, 1, 0, 1, 2, 2, 0, 1], np.int32)


def read():
    return NumpySlicesDataset({"image": images, "label": labels}, shuffle=False)


dataset = read()
for image, label in dataset.create_tuple_iterator():
    print(image.shape, image.dtype, label.dtype)
    break
assert image.shape == (4, 4, 1) and image.dtype == mindspore.uint8 and label.dtype == mindspore.int32
row = next(dataset.create_dict_iterator())
print(f"image: {row['image'].shape} {row['image'].dtype}, label: {row['label'].shape} {row['label'].dtype}")
assert f"{row['image'].shape} {row['image'].dtype}" == "(4, 4, 1) UInt8"
assert f"{row['label'].shape} {row['label'].dtype}" == "() Int32" and sorted(row) == ["image", "label"]
first = next(dataset.create_dict_iterator(output_numpy=True, num_epochs=1))
assert type(first["image"]) is np.ndarray and first["label"] == 0

# ---- shuffle, map, batch ----
mindspore.set_seed(3)
shuffled = read().shuffle(buffer_size=8)
seen = [int(row["label"]) for row in shuffled.create_dict_iterator()]
assert sorted(seen) == sorted(labels.tolist())

scaled = read().map(lambda image: (image / 127.0).astype(np.float32), input_columns="image")
scaled = scaled.map(operations=transforms.TypeCast(mindspore.int64), input_columns=["label"])
image, label = next(scaled.create_tuple_iterator())
print(image.shape, image.dtype, label.dtype)
assert image.dtype == mindspore.float32 and label.dtype == mindspore.int64
np.testing.assert_allclose(image.asnumpy(), images[0] / 127.0, rtol=1e-6)

batched = scaled.batch(batch_size=3)
assert batched.get_dataset_size() == 3 and batched.get_batch_size() == 3
assert [batch[0].shape for batch in batched] == [(3, 4, 4, 1), (3, 4, 4, 1), (2, 4, 4, 1)]
assert read().batch(3, drop_remainder=True).get_dataset_size() == 2

# ---- repeat, take, skip, filter, split, zip, and the order of columns ----
assert read().repeat(2).get_dataset_size() == 16 and read().take(3).get_dataset_size() == 3
assert [int(row["label"]) for row in read().skip(5).create_dict_iterator()] == [2, 0, 1]
ones = read().filter(lambda label: label == 1, input_columns=["label"])
assert sum(1 for _ in ones.create_dict_iterator()) == 3
train, test = read().split([6, 2], randomize=False)
assert train.get_dataset_size() == 6 and test.get_dataset_size() == 2
doubled = read().map(lambda label: (label, label * 2), ["label"], ["label", "double"])
swapped = doubled.project(["double", "image"]).rename("double", "twice")
assert swapped.get_col_names() == ["twice", "image"] and int(next(swapped.create_tuple_iterator())[0]) == 0
weights = NumpySlicesDataset(np.linspace(0, 1, 8, dtype=np.float32), ["weight"], shuffle=False)
both = mindspore.dataset.zip((read(), weights))
assert both.get_col_names() == ["image", "label", "weight"] and both.get_dataset_size() == 8

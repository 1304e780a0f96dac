"""Transforms in `Dataset.map`: the same values as on single images, whatever the workers, the seed being the same."""

from __future__ import annotations

import io
import itertools

import numpy as np
import pytest

from mixtrain.dataset import GeneratorDataset, NumpySlicesDataset, transforms, vision
from mixtrain.dataset.vision import Inter
from mixtrain.seed import set_seed
from tests.backends import quick_every
from tests.dataset import samples

IMAGES = np.random.default_rng(0).integers(0, 256, (40, 12, 10, 3), dtype=np.uint8)
LABELS = np.arange(40, dtype=np.uint8)
CIFAR = [
    vision.RandomCrop((12, 10), padding=2),
    vision.RandomHorizontalFlip(0.5),
    vision.Resize((8, 9)),
    vision.Rescale(1 / 255, 0.0),
    vision.Normalize([0.5, 0.4, 0.3], [0.2, 0.3, 0.4]),
    vision.HWC2CHW(),
]


def read(dataset, epochs=1):
    """Return the columns of each epoch, stacked."""
    iterator = dataset.create_tuple_iterator(num_epochs=epochs, output_numpy=True)
    columns = [list(zip(*iterator, strict=True)) for _ in range(epochs)]
    return [[np.concatenate([np.atleast_1d(value) for value in column]) for column in epoch] for epoch in columns]


def rows_of(images=IMAGES):
    return GeneratorDataset([(image, label) for image, label in zip(images, LABELS, strict=False)],
                            ["image", "label"], shuffle=False)


def slices(**options):
    return NumpySlicesDataset((IMAGES, LABELS), ["image", "label"], **{"shuffle": False, **options})


def test_a_pipeline_gives_what_the_transforms_give_one_by_one():
    plain = CIFAR[2:]
    dataset = slices().map(transforms.TypeCast("int32"), "label").map(plain, "image").batch(16)
    ((images, labels),) = read(dataset)
    expected = np.stack([transforms.Compose(plain)(image) for image in IMAGES])
    np.testing.assert_allclose(images, expected, rtol=1e-6, atol=1e-6)
    assert (images.dtype, labels.dtype) == (np.float32, np.int32)
    assert labels.tolist() == list(range(40))


@quick_every(2)
@pytest.mark.parametrize("source", [slices, rows_of])
def test_random_transforms_do_not_depend_on_workers_or_blocks(source):
    def run(workers, size):
        set_seed(3)
        return read(source().map(CIFAR, "image", num_parallel_workers=workers).batch(size), epochs=2)

    sequential, parallel = run(1, 8), run(4, 40)
    for first, second in zip(sequential, parallel, strict=True):
        np.testing.assert_array_equal(first[0], second[0])
    assert not np.array_equal(sequential[0][0], sequential[1][0])  # Other random numbers in each epoch.


@pytest.mark.slow
def test_arrays_and_rows_draw_the_same_numbers():
    set_seed(3)
    ((first, _),) = read(slices().map(CIFAR, "image").batch(8))
    set_seed(3)
    ((second, _),) = read(rows_of().map(CIFAR, "image").batch(8))
    np.testing.assert_array_equal(first, second)


def test_a_later_epoch_can_be_reached_at_once():
    set_seed(3)
    dataset = slices(shuffle=True).map(CIFAR, "image").shuffle(10).batch(8)
    pipeline = dataset.pipeline
    list(pipeline.iterate())
    second = [np.asarray(batch[0]) for batch in pipeline.iterate()]
    resumed = [np.asarray(batch[0]) for batch in dataset.pipeline_from(1).iterate()]
    np.testing.assert_array_equal(np.concatenate(second), np.concatenate(resumed))


@pytest.mark.slow
def test_two_maps_apart_draw_different_numbers():
    set_seed(0)
    flip = vision.RandomHorizontalFlip(0.5)
    row = np.arange(2, dtype=np.uint8).reshape(1, 1, 2)
    dataset = NumpySlicesDataset(np.repeat(row, 200, 0), "x", shuffle=False)
    ((once,),) = read(dataset.map(flip))
    ((twice,),) = read(dataset.map(flip).map(lambda x: x).map(flip))
    assert once.tolist() != twice.tolist()
    assert {tuple(pair) for pair in twice.tolist()} == {(0, 1), (1, 0)}  # Not every row is flipped back.


def test_images_of_different_sizes_pass_in_order():
    sizes = [(4 + i % 3, 5 + i % 2) for i in range(20)]
    images = [np.full((*size, 3), i, np.uint8) for i, size in enumerate(sizes)]
    dataset = GeneratorDataset([(image,) for image in images], ["image"], shuffle=False)
    ((resized,),) = read(dataset.map([vision.Resize((6, 6)), vision.HWC2CHW()], num_parallel_workers=4).batch(5))
    assert resized.shape == (20, 3, 6, 6)
    assert resized[:, 0, 0, 0].tolist() == list(range(20))
    flipped = list(dataset.map(vision.HorizontalFlip()).create_tuple_iterator(num_epochs=1, output_numpy=True))
    assert [row[0].shape[:2] for row in flipped] == sizes


def test_functions_and_transforms_mix_in_one_list():
    seen = []

    def look(image):
        seen.append((type(image).__name__, image.dtype.name, image.shape))
        return image + 1

    operations = [vision.Resize((4, 4)), look, vision.Rescale(2.0, 0.0), look, vision.HWC2CHW()]
    rows = list(slices().map(operations, "image").create_tuple_iterator(num_epochs=1, output_numpy=True))
    expected = [(vision.Resize((4, 4))(image) + np.uint8(1)) * np.float32(2) + 1 for image in IMAGES]
    np.testing.assert_allclose(np.stack([row[0] for row in rows]), np.stack(expected).transpose(0, 3, 1, 2))
    assert set(seen) == {("ndarray", "uint8", (4, 4, 3)), ("ndarray", "float32", (4, 4, 3))}


def test_several_columns_get_the_same_random_numbers():
    dataset = NumpySlicesDataset((IMAGES, IMAGES[..., 0]), ["image", "mask"], shuffle=False)
    mapped = dataset.map(vision.RandomCrop((5, 5)), ["image", "mask"], ["part", "spot"])
    assert mapped.get_col_names() == ["part", "spot"]
    for part, spot in mapped.create_tuple_iterator(num_epochs=1, output_numpy=True):
        np.testing.assert_array_equal(part[..., 0], spot)


def test_compose_inside_map_is_what_it_holds():
    plain = CIFAR[2:]
    ((first, _),) = read(slices().map(plain, "image").batch(8))
    nested = transforms.Compose([transforms.Compose(plain[:2]), *plain[2:]])
    ((second, _),) = read(slices().map(nested, "image").batch(8))
    np.testing.assert_array_equal(first, second)


@pytest.mark.slow
def test_encoded_images_are_decoded_and_cropped():
    image = pytest.importorskip("PIL.Image")
    files = []
    for number in range(6):
        stream = io.BytesIO()
        grey = np.full((20 + number, 30, 3), 40 * number, np.uint8)
        image.fromarray(grey).save(stream, "JPEG" if number % 2 else "PNG")
        files.append((np.frombuffer(stream.getvalue(), np.uint8),))
    dataset = GeneratorDataset(files, ["image"], shuffle=False)
    ((decoded,),) = read(dataset.map([vision.Decode(), vision.Resize((4, 4))], num_parallel_workers=2).batch(6))
    ((cropped,),) = read(dataset.map(vision.RandomCropDecodeResize((4, 4))).batch(6))
    for batch in (decoded, cropped):
        assert batch.shape == (6, 4, 4, 3)
        np.testing.assert_allclose(batch[:, 0, 0, 0], [0, 40, 80, 120, 160, 200], atol=1)


@pytest.mark.slow
def test_files_are_decoded_before_rows_are_put_together_and_draw_the_same_numbers():
    files = [(np.frombuffer(samples.png(image), np.uint8), label) for image, label in zip(IMAGES, LABELS, strict=True)]
    encoded = GeneratorDataset(files, ["image", "label"], shuffle=False)

    def run(dataset, first):
        set_seed(3)
        typed = dataset.map(transforms.TypeCast("int32"), "label")
        return read(typed.map([first, *CIFAR], "image").batch(8))[0]

    (images, labels), (expected, _) = run(encoded, vision.Decode()), run(rows_of(), vision.Resize((12, 10)))
    np.testing.assert_array_equal(images, expected)
    assert labels.tolist() == list(range(40))


def test_files_decoded_together_are_what_each_is_alone():
    image = pytest.importorskip("PIL.Image")
    files = []
    for number in range(75):  # More than are decoded together, of three formats and sizes.
        stream = io.BytesIO()
        pixels = IMAGES[number % 40, : 10 + number % 3]
        image.fromarray(pixels).save(stream, ("PNG", "JPEG", "BMP")[number // 7 % 3])
        files.append((np.frombuffer(stream.getvalue(), np.uint8), number))
    rows = GeneratorDataset(files, ["image", "number"], shuffle=False).map(vision.Decode(), "image")
    for number, (decoded, label) in enumerate(rows.create_tuple_iterator(num_epochs=1, output_numpy=True)):
        assert label == number
        np.testing.assert_array_equal(decoded, vision.Decode()(files[number][0]))


@pytest.mark.parametrize("bad", [0, 5, 13, 39])
def test_rows_before_a_file_that_cannot_be_decoded_are_given(bad):
    files = [(np.frombuffer(b"text" if number == bad else samples.png(image), np.uint8),)
             for number, image in enumerate(IMAGES)]
    dataset = GeneratorDataset(files, ["image"], shuffle=False).map([vision.Decode(), vision.Invert()], "image")
    rows = dataset.create_tuple_iterator(num_epochs=1, output_numpy=True)
    for (inverted,), image in zip(itertools.islice(rows, bad), IMAGES, strict=False):
        np.testing.assert_array_equal(inverted, 255 - image)
    with pytest.raises(ValueError, match="Unknown image file format"):
        next(rows)


@quick_every(4)
@pytest.mark.parametrize("size", [1, 7, 40, 64])
def test_batches_are_put_together_of_the_groups_that_were_run(size):
    set_seed(3)
    dataset = rows_of().map(CIFAR, "image")
    rows = list(dataset.create_tuple_iterator(num_epochs=1, output_numpy=True))
    set_seed(3)
    batches = list(rows_of().map(CIFAR, "image").batch(size).create_tuple_iterator(num_epochs=1, output_numpy=True))
    assert [len(images) for images, _ in batches] == [min(size, 40 - start) for start in range(0, 40, size)]
    np.testing.assert_array_equal(np.concatenate([images for images, _ in batches]), [image for image, _ in rows])
    assert np.concatenate([labels for _, labels in batches]).tolist() == list(range(40))
    assert all(images.flags.writeable for images, _ in batches)


def test_batches_that_were_run_together_are_each_the_readers_own():
    plain = CIFAR[2:]
    batches = rows_of().map(plain, "image").batch(4).create_tuple_iterator(num_epochs=1, output_numpy=True)
    for number, (images, labels) in enumerate(batches):
        part = slice(4 * number, 4 * number + 4)
        expected = np.stack([transforms.Compose(plain)(image) for image in IMAGES[part]])
        np.testing.assert_allclose(images, expected, rtol=1e-6, atol=1e-6)
        assert labels.tolist() == LABELS[part].tolist()
        images[:] = 0


def test_rows_of_different_sizes_are_refused_by_a_batch():
    images = [(np.zeros((size, 5, 3), np.uint8),) for size in (4, 4, 4, 6)]
    dataset = GeneratorDataset(images, ["image"], shuffle=False).map(vision.HorizontalFlip())
    message = r'batch: expected one shape in column "image", \(4, 5, 3\) .*; got \(6, 5, 3\)'
    with pytest.raises(ValueError, match=message):
        read(dataset.batch(4))


@pytest.mark.slow
def test_pictures_are_made_only_for_functions_that_want_them():
    pytest.importorskip("PIL.Image")
    modes = []

    def look(picture):
        modes.append(picture.mode)
        return picture

    small = vision.Resize((5, 4))
    through = [vision.ToPIL(), small, look, vision.RandomHorizontalFlip(0.0), vision.ToTensor()]
    ((seen, _),) = read(slices().map(through, "image").batch(40))
    ((unseen, _),) = read(slices().map([vision.ToPIL(), small, vision.ToTensor()], "image").batch(40))
    ((plain, _),) = read(slices().map([vision.Resize((5, 4)), vision.ToTensor()], "image").batch(40))
    assert modes == ["RGB"] * 40
    np.testing.assert_allclose(seen, unseen, atol=1e-6)
    assert abs(seen - plain).max() > 0.05  # Pillow averages where it shrinks.


def test_column_order_keeps_and_orders_columns():
    mapped = slices().map(vision.Invert(), "image", column_order=["label", "image"])
    assert mapped.get_col_names() == ["label", "image"]
    assert mapped.get_dataset_size() == 40


@pytest.mark.parametrize(
    ("operations", "message"),
    [
        ([vision.Normalize([0.5], [0.5]), vision.Normalize([0.5] * 2, [0.5] * 2)],
         'map, column "image": Normalize: expected 2 channels; got 3.'),
        (vision.RandomCrop(32), 'map, column "image": RandomCrop: expected a part inside the image, of height 12'),
        (vision.Crop((0, 5), (3, 9)), "Crop: expected a part inside the image, of height 12 and width 10; got one of"),
        (vision.Decode(), "Decode: expected a file's contents, a vector of uint8; got uint8 of 3 dimensions"),
        ([vision.Rescale(1.0, 0.0), vision.Equalize()], "Equalize: expected an image of dtype uint8; got float32"),
        ([vision.HWC2CHW(), vision.RandomColorAdjust(0.1)], "RandomColorAdjust: expected 3 channels; got 10"),
    ],
)
def test_what_does_not_fit_is_named_with_its_column(operations, message):
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        read(slices().map(operations, "image").batch(4))


def test_a_row_that_does_not_fit_is_named_when_sizes_differ():
    images = [np.zeros((size, size, 3), np.uint8) for size in (8, 9, 4)]
    dataset = GeneratorDataset([(image,) for image in images], ["image"], shuffle=False).map(vision.RandomCrop(6))
    with pytest.raises(ValueError, match='column "image": RandomCrop: .* of height 4 and width 4; got one of height 6'):
        read(dataset.batch(1))


@pytest.mark.parametrize(
    ("operations", "error", "message"),
    [
        (vision.HWC2CHW, TypeError, r"got the class HWC2CHW. Write HWC2CHW\(...\)"),
        ([vision.HWC2CHW(), 3], TypeError, "operations must be functions; got int 3"),
    ],
)
def test_what_is_no_operation_is_named(operations, error, message):
    with pytest.raises(error, match=message):
        slices().map(operations, "image")


def test_workers_are_checked():
    with pytest.raises(ValueError, match="num_parallel_workers must be at least 1"):
        slices().map(vision.HWC2CHW(), "image", num_parallel_workers=0)


def test_an_exception_of_the_source_passes_as_itself_after_the_rows_before_it():
    def source():
        yield from ((image,) for image in IMAGES[:5])
        raise ZeroDivisionError("mine")

    dataset = GeneratorDataset(source, ["image"]).map(vision.Resize(4), num_parallel_workers=3)
    rows = dataset.create_tuple_iterator(num_epochs=1, output_numpy=True)
    assert sum(1 for _ in zip(range(5), rows, strict=False)) == 5
    with pytest.raises(ZeroDivisionError, match="^mine$"):
        next(rows)


def test_random_sizes_come_row_by_row():
    choice = transforms.RandomChoice([vision.Resize((3, 3), Inter.NEAREST), vision.CenterCrop(5)])
    rows = list(slices().map(choice, "image").create_tuple_iterator(num_epochs=1, output_numpy=True))
    assert {row[0].shape for row in rows} == {(3, 3, 3), (5, 5, 3)}


@pytest.mark.slow
def test_files_that_are_read_again_and_again_give_the_same_images_and_one_of_another_size_does_too() -> None:
    files = [vision.encode_png(image) for image in [*IMAGES[:39], IMAGES[39, 1:]]]
    labels = np.arange(40)

    def images_of(count, epochs):
        rows = GeneratorDataset(list(zip(files[:count], labels, strict=False)), ["image", "label"], shuffle=False)
        return read(rows.map([vision.Decode(), vision.Resize((8, 9))], "image").batch(8).repeat(epochs))[0]

    expected = np.stack([vision.Resize((8, 9))(vision.Decode()(file)) for file in files])
    for count in (39, 40):
        images, numbers = images_of(count, 20)
        np.testing.assert_array_equal(images, np.concatenate([expected[:count]] * 20))
        assert numbers.tolist() == [*range(count)] * 20


@pytest.mark.slow
def test_a_broken_file_after_many_good_ones_is_found_in_its_place() -> None:
    good = vision.encode_png(IMAGES[0])
    rows = GeneratorDataset([(file,) for file in [*[good] * 2000, good[:20]]], ["image"], shuffle=False)
    dataset = rows.map([vision.Decode(), vision.RandomHorizontalFlip()], "image")
    iterator = dataset.create_tuple_iterator(num_epochs=1, output_numpy=True)
    for _ in range(2000):
        assert next(iterator)[0].shape == IMAGES[0].shape
    with pytest.raises(ValueError):
        next(iterator)

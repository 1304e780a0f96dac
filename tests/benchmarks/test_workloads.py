"""Workloads: the shapes of their arrays, and networks that are the same in each framework."""

from __future__ import annotations

import dataclasses
import pathlib

import keras
import numpy as np
import pytest

from benchmarks.networks import in_cells, in_keras
from benchmarks.pictures import epochs_of, folder_of, png
from benchmarks.workloads import CIFAR, LENET, MLP, RESNET, TRANSFORMER, Workload, arrays
from mixtrain import nn
from mixtrain.dataset import vision
from tests.backends import quick_every


def test_arrays_hold_one_batch_a_step() -> None:
    x, y = arrays(dataclasses.replace(LENET, batch=3), 2)
    assert x.shape == (2, 3, 32, 32, 1) and x.dtype == np.float32
    assert y.shape == (2, 3, 10) and y.dtype == np.float32
    np.testing.assert_array_equal(y.sum(axis=-1), np.ones((2, 3)))


def test_channels_first_arrays_are_the_same_images() -> None:
    small = dataclasses.replace(CIFAR, batch=2)
    last, _ = arrays(small, 1)
    first, _ = arrays(small, 1, channels_first=True)
    assert first.shape == (1, 2, 3, 32, 32)
    np.testing.assert_array_equal(first[0, :, 1], last[0, ..., 1])


def test_only_images_have_channels_to_move() -> None:
    tokens, _ = arrays(TRANSFORMER, 1, channels_first=True)
    assert tokens.shape == (1, 32, 64) and tokens.dtype == np.int32
    assert arrays(MLP, 1, channels_first=True)[0].shape == (1, 32, 64)


@quick_every(2)
@pytest.mark.parametrize("workload", [MLP, LENET, CIFAR], ids=lambda workload: workload.network)
def test_a_cell_and_a_keras_network_have_the_same_trainable_parameters(workload: Workload) -> None:
    cell, network = in_cells.network(nn, workload), in_keras.network(workload)
    sizes = sorted(int(np.prod(parameter.shape)) for parameter in cell.trainable_params())
    assert sizes == sorted(int(np.prod(weight.shape)) for weight in network.trainable_variables)


# ResNet-20 has 269,722 with bare shortcuts; the two projections and their normalization add 2,752.
@quick_every(2)
@pytest.mark.parametrize(("workload", "count"), [(RESNET, 272_474), (TRANSFORMER, 525_834)], ids=["resnet", "encoder"])
def test_deep_keras_networks_have_as_many_trainable_parameters_as_counted(workload: Workload, count: int) -> None:
    network = in_keras.network(workload)
    assert sum(int(np.prod(weight.shape)) for weight in network.trainable_variables) == count


def test_networks_are_made_with_the_same_weights_under_any_policy_and_leave_the_policy_alone() -> None:
    plain, half = in_keras.network(MLP), in_keras.network(MLP, "mixed_bfloat16")
    for a, b in zip(plain.get_weights(), half.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)
    assert half.layers[0].compute_dtype == "bfloat16"
    assert keras.config.dtype_policy().name == "float32"


@pytest.mark.parametrize("channels", [1, 3])
def test_png_files_hold_the_image(channels: int) -> None:
    image = np.random.default_rng(0).integers(0, 256, (5, 7, channels), np.uint8)
    result = vision.Decode()(np.frombuffer(png(image), np.uint8))
    np.testing.assert_array_equal(result, np.broadcast_to(image, (5, 7, 3)))


def test_pictures_are_the_same_in_every_process_and_evenly_of_all_classes() -> None:
    files = sorted(pathlib.Path(folder_of(LENET)).rglob("*.png"))
    assert len(files) == 1024 and len({file.parent for file in files}) == 10
    assert vision.Decode()(np.frombuffer(files[0].read_bytes(), np.uint8)).sum() == 286521
    assert [epochs_of(LENET, steps) for steps in (1, 32, 33, 256)] == [1, 1, 2, 8]

"""The backend is checked first, and the import says nothing."""

from __future__ import annotations

import os
import subprocess
import sys

import keras
import pytest

from mixtrain import MixtrainError, UnsupportedBackendError
from mixtrain.backend.supported import check_backend
from tests.backends import without_logs


def imported(**environment: str) -> subprocess.CompletedProcess[str]:
    """Import mixtrain in a fresh process."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TF_", "KERAS_"))}
    command = [sys.executable, "-c", "import mixtrain"]
    return subprocess.run(command, env={**kept, **environment}, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("backend", ["torch", "numpy"])
def test_a_backend_without_an_backend_is_refused_and_the_error_says_what_to_set(backend: str) -> None:
    result = imported(KERAS_BACKEND=backend)
    assert result.returncode == 1
    last = result.stderr.strip().splitlines()[-1]
    assert f'must be tensorflow or jax; got "{backend}"' in last
    assert "KERAS_BACKEND=tensorflow" in last


@pytest.mark.slow
def test_importing_mixtrain_prints_no_more_than_importing_keras() -> None:
    result = imported(KERAS_BACKEND=keras.backend.backend())
    assert (result.returncode, result.stdout, without_logs(result.stderr)) == (0, "", [])


def test_the_error_is_an_import_error_and_a_mixtrain_error() -> None:
    with pytest.raises(UnsupportedBackendError) as caught:
        check_backend("torch")
    assert isinstance(caught.value, ImportError) and isinstance(caught.value, MixtrainError)
    check_backend("tensorflow")
    check_backend("jax")


TRAINING = """
import sys
sys.modules["tensorflow"] = None  # as where it is not installed
import keras, numpy as np
import mixtrain as ms

class Batches(keras.utils.PyDataset):
    def __len__(self):
        return 2
    def __getitem__(self, index):
        return np.ones((4, 3), np.float32), np.zeros((4, 2), np.float32)

for dataset in ([Batches(workers=1)[0]] * 2, Batches(workers=1)):
    for sink in (False, True):
        network = keras.Sequential([keras.layers.Dense(2)])
        model = ms.Model(network, "mse", keras.optimizers.SGD(0.1), amp_level="O2")
        history = model.train(2, dataset, dataset_sink_mode=sink)
        print(len(history["loss"]), model.predict(ms.Tensor(np.ones((1, 3), np.float32))).shape)
"""


@pytest.mark.slow
def test_with_the_jax_backend_training_needs_no_tensorflow() -> None:
    pytest.importorskip("jax")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TF_", "KERAS_"))}
    result = subprocess.run(
        [sys.executable, "-c", TRAINING], env={**kept, "KERAS_BACKEND": "jax"}, capture_output=True, text=True,
        check=False,
    )
    assert result.stdout.splitlines()[-1:] == ["2 (1, 2)"], result.stderr
    assert result.stdout.count("2 (1, 2)") == 4

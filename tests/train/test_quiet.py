"""Nothing of Keras's talk, and no warning, reaches a user: scripts run as users run them, their standard error read.

What TensorFlow's C++ libraries log is theirs, and off here. What Python hides by default (DeprecationWarning inside
Keras) stays hidden.
"""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import textwrap

import pytest

from tests.backends import without_logs

ROOT = pathlib.Path(__file__).parents[2]

NETWORKS = """
    import pathlib
    import sys
    import tempfile

    import mixtrain
    import mixtrain.dataset as ds
    import mixtrain.nn as nn
    import numpy as np
    from mixtrain import Model

    draw = np.random.default_rng(0)
    images = draw.standard_normal((16, 1, 32, 32)).astype(np.float32)
    labels = draw.integers(0, 10, 16).astype(np.int32)

    class Source:
        def __iter__(self):
            yield from zip(images, labels)

        def __len__(self):
            return len(images)

    def dataset():
        return ds.GeneratorDataset(Source(), ["image", "label"], shuffle=False).batch(4)

    class LeNet(nn.Cell):
        def __init__(self):
            super().__init__()
            self.features = nn.SequentialCell([
                nn.Conv2d(1, 6, 5, pad_mode="valid"), nn.ReLU(), nn.MaxPool2d(2, 2),
                nn.Conv2d(6, 16, 5, pad_mode="valid"), nn.ReLU(), nn.MaxPool2d(2, 2), nn.Flatten(),
                nn.Dense(400, 84), nn.ReLU(), nn.Dense(84, 10),
            ])

        def construct(self, x):
            return self.features(x)

    def lenet(level="O2", **options):
        net = LeNet()
        loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
        optimizer = nn.Momentum(net.trainable_params(), 0.01, 0.9)
        return Model(net, loss, optimizer, metrics={"accuracy"}, amp_level=level, **options)
"""

SCRIPTS = {
    "LeNet at O2 in both feeds, evaluated, used, saved and loaded": """
        folder = pathlib.Path(tempfile.mkdtemp())
        for sink in (False, True):
            model = lenet()
            model.fit(2, dataset(), dataset(), dataset_sink_mode=sink, verbose=0)
            model.eval(dataset())
            model.predict(images[:4])
            mixtrain.save_checkpoint(model.train_network, folder / "lenet.ckpt")
            mixtrain.load_checkpoint(folder / "lenet.ckpt", lenet().train_network)
    """,
    "a source in Python that fails": """
        class Failing(Source):
            def __iter__(self):
                yield from [*zip(images, labels)][:6]
                raise ZeroDivisionError("of the user's own")

        for sink in (False, True):
            failing = ds.GeneratorDataset(Failing(), ["image", "label"], shuffle=False).batch(4)
            try:
                lenet("O0").train(1, failing, dataset_sink_mode=sink, verbose=0)
            except ZeroDivisionError:
                continue
            raise SystemExit("the error was lost")
    """,
    "a source in Python that is left in the middle, and interrupted runs": """
        for _ in range(4):
            iterator = iter(dataset().create_tuple_iterator())
            next(iterator)
            del iterator
            next(iter(dataset().map(lambda image: image * 2, "image").create_dict_iterator()))

        class Interrupt(mixtrain.Callback):
            def on_train_step_end(self, run_context):
                if run_context.original_args().cur_step_num >= 2:
                    raise KeyboardInterrupt

        class Stop(mixtrain.Callback):
            def on_train_step_end(self, run_context):
                run_context.request_stop()

        for sink in (False, True):
            for callback in (Interrupt(), Stop()):
                try:
                    lenet("O0").train(9, dataset(), callback, dataset_sink_mode=sink, sink_size=2, verbose=0)
                except KeyboardInterrupt:
                    pass

        lenet("O0").train(1, dataset(), dataset_sink_mode=True, sink_size=3, verbose=0)  # left at exit
    """,
    "many Models, custom loops and compiled functions in one process": """
        import keras

        batches = 3 * [(np.ones((4, 4), np.float32), np.ones((4, 2), np.float32))]
        for number in range(7):
            for sink in (False, True):
                net = nn.Dense(4, 2)
                model = Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1), metrics={"mae"})
                model.fit(1, batches, batches[:1], dataset_sink_mode=sink, verbose=0)
                model.predict(batches[0][0])
            network = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)])
            Model(network, "mse", "sgd").train(1, batches, dataset_sink_mode=True, verbose=0)
            step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), 0.1))
            step.set_train()
            step(*map(mixtrain.Tensor, batches[0]))

            @mixtrain.jit
            def double(x):
                return x * 2

            double(mixtrain.Tensor(np.ones((number + 1,), np.float32)))
    """,
    "a Keras model with every callback": """
        import keras

        def run(level, sink, dtype):
            folder = pathlib.Path(tempfile.mkdtemp())
            network = keras.Sequential([
                keras.Input((4,)), keras.layers.Dense(8, "relu"), keras.layers.BatchNormalization(),
                keras.layers.Dropout(0.5), keras.layers.Dense(2),
            ])
            callbacks = [
                keras.callbacks.EarlyStopping("val_loss", patience=9, restore_best_weights=True),
                keras.callbacks.ModelCheckpoint(folder / "best.keras", "val_loss", save_best_only=True),
                keras.callbacks.ModelCheckpoint(folder / "{epoch}.weights.h5", save_weights_only=True, save_freq=2),
                keras.callbacks.ReduceLROnPlateau("val_loss", patience=0), keras.callbacks.TerminateOnNaN(),
                keras.callbacks.CSVLogger(folder / "log.csv"), keras.callbacks.BackupAndRestore(folder / "backup"),
                keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate / 2),
                keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: None),
                mixtrain.LossMonitor(), mixtrain.TimeMonitor(), mixtrain.LossScaleMonitor(), mixtrain.History(),
                mixtrain.ModelCheckpoint("ours", folder), mixtrain.SummaryCollector(folder / "summary"),
                mixtrain.OnRequestExit(directory=folder), mixtrain.BackupAndRestore(folder / "our_backup"),
            ]
            model = Model(network, "mse", "adam", ["mae"], amp_level=level, cast_model_type=dtype)
            batches = 3 * [(np.ones((4, 4), np.float32), np.ones((4, 2), np.float32))]
            model.fit(2, batches, batches[:1], callbacks=callbacks, dataset_sink_mode=sink)
            model.save(folder / "network.keras")
            model.predict(batches[0][0])

        run("O0", False, None)
        run("O2", True, "float16")
        run("O2", False, "bfloat16")
    """,
}


_MARK = "-- TensorFlow is imported --"
_IMPORTED = f"import sys, tensorflow\nprint({_MARK!r}, file=sys.stderr, flush=True)\n"
# A process each, for the sake of time.
RUNS = {
    "mixtrain imports TensorFlow": ("", list(SCRIPTS)[:2]),
    "the user has imported TensorFlow": (_IMPORTED, list(SCRIPTS)[2:]),
}


def _standard_error(script: str) -> list[str]:
    """Run a script as a user would, with Python's warnings on; return what it wrote to standard error."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("TF_", "PYTHON"))}
    done = subprocess.run(
        [sys.executable, "-W", "default", "-W", "ignore::DeprecationWarning", "-c", script], cwd=ROOT,
        env=environment | {"TF_CPP_MIN_LOG_LEVEL": "3"}, capture_output=True, text=True, timeout=400,
    )
    spoken = done.stderr.split(_MARK)[-1]
    lines = without_logs(spoken)
    assert done.returncode == 0, "\n".join(lines)
    return lines


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.tensorflow) if "user" in name else name for name in RUNS]
)
def test_nothing_is_written_to_standard_error(name: str) -> None:
    before, scripts = RUNS[name]
    parts = [NETWORKS, *(SCRIPTS[script] for script in scripts)]
    script = before + "".join(map(textwrap.dedent, parts))
    assert _standard_error(script) == []

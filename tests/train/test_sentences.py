"""A misuse that people of Keras and PyTorch write gets a sentence with the line to write."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest

from mixtrain import LossMonitor, Model, amp, nn
from mixtrain.dataset import NumpySlicesDataset
from tests.backends import quick_every

_draw = np.random.default_rng(0)
X, Y = _draw.standard_normal((12, 6)).astype(np.float32), _draw.standard_normal((12, 1)).astype(np.float32)
CLASSES = _draw.integers(0, 3, 12)
ONE_HOT, TEXT = np.eye(3, dtype=np.float32)[CLASSES], np.array(["a", "b", "c"])[CLASSES]


def network(outputs: int = 1, **options: Any) -> keras.Model:
    return keras.Sequential([keras.Input((6,)), keras.layers.Dense(outputs, **options)])


def model(**options: Any) -> Any:
    return Model(network(), "mse", "sgd", **options)


def classifier(loss: Any) -> Any:
    return Model(network(3, activation="softmax"), loss, "sgd")


def of_cells() -> Any:
    cell = nn.Dense(6, 1)
    return Model(cell, nn.MSELoss(), nn.SGD(cell.trainable_params(), 0.1))


SPARSE, DENSE = "sparse_categorical_crossentropy", "categorical_crossentropy"
ROWS: list[tuple[str, Callable[[], Any], type[Exception], str]] = [
    # ---- arguments by name
    ("lossfn=", lambda: Model(network(), lossfn="mse", optimizer="sgd"), TypeError,  # type: ignore[arg-type]
     "Model: there is no argument 'lossfn'; got lossfn='mse'. Write loss_fn='mse'."),
    ("amp_levl=", lambda: model(amp_levl="O2"), TypeError, "Write amp_level='O2'."),
    ("level=", lambda: model(level="O2"), TypeError, "Write amp_level='O2'."),
    ("batchsize=", lambda: model().fit(X, Y, batchsize=3), TypeError, "Write batch_size=3."),
    ("callback=", lambda: model().train(1, [(X, Y)], callback=None), TypeError, "Write callbacks=None."),
    ("evaluate batchsize=", lambda: model().evaluate(X, Y, batchsize=3), TypeError, "Write batch_size=3."),
    # ---- arrays where batches are needed
    ("train(X, Y, epochs=)", lambda: model().train(X, Y, epochs=1), TypeError,
     "Model.train: there is no argument 'epochs', which fit has. Write model.fit(x, y, ...)."),
    ("train(X, Y)", lambda: model().train(X, Y), TypeError, "or model.fit(x, y, epochs=...) for arrays."),
    ("eval(X, Y)", lambda: model().eval(X, Y), ValueError, "Write model.fit(x, y), model.evaluate(x, y), or [(x, y)]"),
    ("eval(X, Y, batch_size=)", lambda: model().eval(X, Y, batch_size=3), TypeError, "model.evaluate(x, y, ...)."),
    ("train(1, (X, Y))", lambda: model().train(1, (X, Y)), ValueError, "Write model.fit(x, y), model.evaluate(x, y),"),
    ("train(1, (X, Y)) of a Cell", lambda: of_cells().train(1, (X, Y)), ValueError, "or [(x, y)] for one batch"),
    ("evaluate batches", lambda: model().evaluate([(X, Y), (X[:3], Y[:3])]), TypeError, "Write model.eval(batches)."),
    ("fit batches", lambda: model().fit([(X, Y), (X, Y)]), TypeError, "Write model.train(1, batches)."),
    ("predict batches", lambda: model().predict([(X, Y)]), TypeError, "Write model.predict(x) for each batch."),
    # ---- labels
    ("text", lambda: classifier(SPARSE).fit(X, TEXT), ValueError, "np.unique(labels, return_inverse=True)[1]"),
    ("text in batches", lambda: classifier(SPARSE).train(1, [(X, TEXT)]), ValueError, "column 1 of a batch must"),
    ("text in sink feed", lambda: classifier(SPARSE).train(1, [(X, TEXT)], dataset_sink_mode=True), ValueError,
     "Model: column 1 of a batch must hold numbers; got"),
    ("text, evaluate", lambda: classifier(SPARSE).evaluate(X, TEXT), ValueError, "Write class numbers for labels"),
    ("one-hot, sparse loss", lambda: classifier(SPARSE).fit(X, ONE_HOT), ValueError,
     'got labels (12, 3). Write loss_fn="categorical_crossentropy" for one-hot labels.'),
    ("numbers, dense loss", lambda: classifier(DENSE).fit(X, CLASSES), ValueError,
     'got labels (12,). Write loss_fn="sparse_categorical_crossentropy" for class numbers.'),
    ("numbers in a column", lambda: classifier(DENSE).evaluate(X, CLASSES[:, None]), ValueError,
     'got labels (12, 1). Write loss_fn="sparse_categorical_crossentropy" for class numbers.'),
    ("numbers, logits", lambda: classifier(keras.losses.CategoricalCrossentropy(True)).fit(X, CLASSES), ValueError,
     "Write keras.losses.SparseCategoricalCrossentropy(from_logits=True) for class numbers."),
    ("numbers, binary loss", lambda: classifier("binary_crossentropy").fit(X, CLASSES), ValueError,
     'Write loss_fn="sparse_categorical_crossentropy" for class numbers.'),
    ("one-hot, sparse loss of a Cell", lambda: Model(
        nn.Dense(6, 3), nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean"), "sgd"
    ).train(1, [(X, ONE_HOT)]), ValueError, "Write sparse=False."),
    ("numbers, dense loss of a Cell", lambda: Model(
        nn.Dense(6, 3), nn.SoftmaxCrossEntropyWithLogits(reduction="mean"), "sgd"
    ).train(1, [(X, CLASSES)]), ValueError, "Write sparse=True for class numbers."),
    # ---- names
    ("loss name", lambda: classifier("sparse_categorical_crosentropy"), ValueError, f'Write loss_fn="{SPARSE}".'),
    ("short loss name", lambda: classifier("msee"), ValueError, 'Write loss_fn="mse".'),
    ("optimizer name", lambda: Model(network(), "mse", "adm"), ValueError, 'Write optimizer="adam".'),
    ("metric name", lambda: model(metrics=["acuracy"]), ValueError, 'Write name="accuracy".'),
    ("Keras's metric name", lambda: model(metrics=["mean_absolut_error"]), ValueError, '"mean_absolute_error".'),
    # ---- levels
    ("mixed_float16", lambda: model(amp_level="mixed_float16"), ValueError, '. Write amp_level="O2".'),
    ("mixed_bfloat16", lambda: model(amp_level="mixed_bfloat16"), ValueError,
     'Write amp_level="O2", cast_model_type="bfloat16".'),
    ("level 2", lambda: model(amp_level=2), ValueError, 'got 2. Write amp_level="O2".'),
    ("level True", lambda: model(amp_level=True), ValueError, 'got True. Write amp_level="O2".'),
    ("level of auto_mixed_precision", lambda: amp.auto_mixed_precision(nn.Dense(2, 1), "fp16"),  # type: ignore[arg-type]
     ValueError, 'got \'fp16\'. Write amp_level="O2".'),
    # ---- PyTorch's names
    ("nn.Linear", lambda: nn.Linear(2, 3), NotImplementedError, "Write nn.Dense."),  # type: ignore[attr-defined]
    ("parameters()", lambda: nn.Dense(2, 3).parameters(), AttributeError, "or cell.trainable_params() for an"),
    ("cell.fit", lambda: nn.Dense(2, 3).fit(X, Y), AttributeError, "Write mixtrain.Model(cell, loss_fn, optimizer)"),
    ("cell.train()", lambda: nn.Dense(2, 3).train(), AttributeError, "Write cell.set_train() for the mode; to train"),
    # ---- numbers and callbacks
    ("batch_size=32.0", lambda: model().fit(X, Y, batch_size=32.0), TypeError, "got float 32.0. Write batch_size=32."),
    ("batch_size='32'", lambda: model().fit(X, Y, batch_size="32"), TypeError, "got str '32'. Write batch_size=32."),
    ("predict(X, 32.0)", lambda: model().predict(X, 32.0), TypeError, "got float 32.0. Write batch_size=32."),
    ("epochs=2.5", lambda: model().fit(X, Y, epochs=2.5), TypeError,
     "Model.fit: epochs must be an int; got float 2.5. Write epochs=2."),
    ("epoch=2.5", lambda: model().train(2.5, [(X, Y)]), TypeError, "Model.train: epoch must be an int; got float 2.5."),
    ("validation_freq=0.5", lambda: model().fit(X, Y, validation_data=(X, Y), validation_freq=0.5), TypeError,
     "Model.fit: validation_freq must be an int; got float 0.5. Write validation_freq=1."),
    ("callback class", lambda: model().fit(X, Y, callbacks=[keras.callbacks.History], verbose=0), TypeError,
     "each must be a mixtrain or Keras callback; got type the class History. Write callbacks=[History()]."),
    ("our callback class", lambda: model().fit(X, Y, callbacks=LossMonitor, verbose=0), TypeError,
     "Write callbacks=[LossMonitor()]."),
    # ---- rows that are no batches
    ("no batch()", lambda: of_cells().train(1, NumpySlicesDataset((X, Y)), verbose=0), UserWarning,
     "got columns of shapes (6,) and (1,), which look like one row each. Write dataset.batch(32)."),
    ("no batch(), class numbers", lambda: classifier(SPARSE).train(1, NumpySlicesDataset((X, CLASSES))), UserWarning,
     "Model.train: expected batches"),
    ("no batch(), one-hot", lambda: classifier(DENSE).eval(NumpySlicesDataset((X, ONE_HOT))), UserWarning,
     "Model.eval: expected batches"),
    ("rows in a list", lambda: model().train(1, [*zip(X, Y, strict=True)]), UserWarning, "Write dataset.batch(32)."),
]


@quick_every(7)
@pytest.mark.parametrize(("misuse", "error", "sentence"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_a_misuse_says_what_to_write(misuse: Callable[[], Any], error: type[Exception], sentence: str) -> None:
    with pytest.raises(error, match=re.escape(sentence)):
        misuse()


def test_batches_of_any_kind_are_no_rows() -> None:
    columns = np.zeros((7, 4, 3), np.float32), np.zeros((4,), np.int32)  # Time first; labels by the second axis.
    graphs = np.zeros((30, 3), np.float32), np.zeros((5, 1), np.float32)
    flat = np.zeros((4, 5, 3), np.float32), np.zeros((20,), np.float32)

    def mean(outputs: Any, label: Any) -> Any:
        return outputs.mean() + 0 * label.astype("float32").mean()

    for x, y in (columns, graphs, flat):
        net = nn.Dense(3, 1)
        history = Model(net, mean, nn.SGD(net.trainable_params(), 0.1)).train(1, [(x, y)], verbose=0)
        assert np.isfinite(history["loss"]).all()

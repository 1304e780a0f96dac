"""ResNet-20 learns CIFAR-10 in mixed precision, as a Cell or as a Keras functional model.

It prints which layer computes in which dtype and why, each epoch's summary, the test accuracy, and how the loss scale
moved; a run that was interrupted goes on from its last checkpoint.

    python examples/cifar10_resnet.py --data-dir cifar-10-batches-bin --frontend cell --amp-level O2 --epochs 100
    python examples/cifar10_resnet.py --frontend keras --dtype float16 --checkpoint-dir run --resume
"""

from __future__ import annotations

import argparse
import pathlib
import sys
import time
from typing import Any

import keras

import mixtrain
import mixtrain.nn as nn
from mixtrain import CheckpointConfig, LossScaleMonitor, Model, ModelCheckpoint

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from cifar10_data import find_pictures, make_batches  # noqa: E402

WIDTHS = (16, 32, 64)
WEIGHT_DECAY = 1e-4


class Block(nn.Cell):
    """Two 3x3 convolutions beside a shortcut, which is a 1x1 convolution where the shape changes."""

    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 3, stride, pad_mode="pad", padding=1)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, pad_mode="same")
        self.bn2 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU()
        self.changes = stride != 1 or channels != width
        if self.changes:
            self.conv3 = nn.Conv2d(channels, width, 1, stride, pad_mode="valid")
            self.bn3 = nn.BatchNorm2d(width)

    def construct(self, x):
        """Map (N, channels, H, W) to (N, width, H / stride, W / stride)."""
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        return self.relu(y + (self.bn3(self.conv3(x)) if self.changes else x))


class ResNet(nn.Cell):
    """The ResNet for small pictures, of 6n + 2 layers."""

    def __init__(self, depth: int = 20, num_class: int = 10) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, WIDTHS[0], 3, pad_mode="same")
        self.bn = nn.BatchNorm2d(WIDTHS[0])
        self.relu = nn.ReLU()
        self.blocks = nn.SequentialCell([Block(*shape) for shape in block_shapes(depth)])
        self.pool = nn.AvgPool2d(8)
        self.flatten = nn.Flatten()
        self.fc = nn.Dense(WIDTHS[-1], num_class)

    def construct(self, x):
        """Map images (N, 3, 32, 32) to logits (N, num_class)."""
        x = self.blocks(self.relu(self.bn(self.conv(x))))
        return self.fc(self.flatten(self.pool(x)))


def block_shapes(depth: int) -> list[tuple[int, int, int]]:
    """Return (channels in, channels out, stride) of each block."""
    if depth < 8 or (depth - 2) % 6:
        raise SystemExit(f"cifar10_resnet: --depth must be 6n + 2; got {depth}. Write: --depth 20")
    shapes, channels = [], WIDTHS[0]
    for width in WIDTHS:
        for block in range((depth - 2) // 6):
            shapes.append((channels, width, 2 if width != WIDTHS[0] and block == 0 else 1))
            channels = width
    return shapes


def keras_resnet(depth: int = 20, num_class: int = 10) -> keras.Model:
    """Return the same network as a Keras functional model of images (N, 32, 32, 3)."""
    layers = keras.layers

    def convolved(x: Any, width: int, size: int, stride: int) -> Any:
        x = layers.Conv2D(width, size, stride, "same", use_bias=False, kernel_initializer="he_normal")(x)
        return layers.BatchNormalization(momentum=0.9, epsilon=1e-5)(x)

    images = keras.Input((32, 32, 3))
    x = layers.ReLU()(convolved(images, WIDTHS[0], 3, 1))
    for channels, width, stride in block_shapes(depth):
        y = layers.ReLU()(convolved(x, width, 3, stride))
        shortcut = x if stride == 1 and channels == width else convolved(x, width, 1, stride)
        x = layers.ReLU()(layers.Add()([convolved(y, width, 3, 1), shortcut]))
    logits = layers.Dense(num_class)(layers.GlobalAveragePooling2D()(x))
    return keras.Model(images, logits, name=f"resnet{depth}")


def make_model(options: argparse.Namespace, steps: int) -> Model:
    """Return the network with its loss, its optimizer on a cosine schedule over all steps, and its precision."""
    rate = options.learning_rate
    if options.frontend == "cell":
        network = ResNet(options.depth)
        schedule = nn.CosineDecayLR(0.0, rate, steps)
        loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
        optimizer = nn.Momentum(network.trainable_params(), schedule, 0.9, weight_decay=WEIGHT_DECAY)
    else:
        network = keras_resnet(options.depth)
        schedule = keras.optimizers.schedules.CosineDecay(rate, steps)
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        # Keras keeps the decay out of the momentum, which would multiply it by 1 / (1 - 0.9).
        optimizer = keras.optimizers.SGD(schedule, momentum=0.9, weight_decay=10 * WEIGHT_DECAY)
    return Model(
        network, loss, optimizer, metrics={"accuracy"}, amp_level=options.amp_level, cast_model_type=options.dtype
    )


def resume(model: Model, options: argparse.Namespace) -> int:
    """Load a checkpoint into the model; return how many epochs it has had, 0 without a checkpoint."""
    path = pathlib.Path(options.resume) if options.resume else None
    if path is None and options.resume is not None:
        files = sorted(pathlib.Path(options.checkpoint_dir).glob("*.ckpt"), key=lambda file: file.stat().st_mtime_ns)
        path = files[-1] if files else None
    if path is None:
        return 0
    checkpoint = mixtrain.load_checkpoint(str(path))
    mixtrain.load_param_into_net(model.train_network, checkpoint)
    print(f"resumed from {path}: {checkpoint.initial_epoch} epochs done")
    return int(checkpoint.initial_epoch)


def parse_arguments() -> argparse.Namespace:
    """Return the command line's options."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--frontend", default="cell", choices=["cell", "keras"], help="the network as a Cell or as a Keras model")
    add("--data-dir", metavar="DIR", help="folder of data_batch_1.bin to data_batch_5.bin and test_batch.bin")
    add("--download", action="store_true", help="let Keras fetch CIFAR-10 where its cache has none")
    add("--limit", type=int, metavar="N", help="train and test on the first N rows")
    add("--depth", type=int, default=20, help="layers, 6n + 2")
    add("--amp-level", default="O2", choices=["O0", "O1", "O2", "O3", "auto"])
    add("--dtype", default="bfloat16", choices=["float16", "bfloat16"], help="the half dtype; float16 is for GPUs")
    add("--epochs", type=int, default=10)
    add("--batch-size", type=int, default=128)
    add("--learning-rate", type=float, default=0.1, help="the first one; it falls to 0 along a cosine")
    add("--sink", action="store_true", help="run each epoch inside one compiled call")
    add("--checkpoint-dir", metavar="DIR", help="write a checkpoint after each epoch")
    add("--resume", nargs="?", const="", metavar="CKPT", help="go on from a checkpoint, by default the folder's newest")
    add("--plot", metavar="PNG", help="save a picture of loss and loss scale over steps")
    options = parser.parse_args()
    if options.resume == "" and options.checkpoint_dir is None:
        parser.error("--resume without a file needs --checkpoint-dir")
    return options


def main() -> float:
    """Train, evaluate, report; return the test accuracy."""
    options = parse_arguments()
    mixtrain.set_seed(1)
    pictures = find_pictures(options.data_dir, download=options.download, limit=options.limit)
    print(pictures.said)
    train_set, test_set = make_batches(pictures, options.batch_size, channels_first=options.frontend == "cell")
    steps = train_set.get_dataset_size()
    model = make_model(options, options.epochs * steps)
    print(model.precision_report(), end="\n\n")
    done = resume(model, options)
    monitor = LossScaleMonitor()
    callbacks: list[Any] = [monitor]
    if options.checkpoint_dir is not None:
        config = CheckpointConfig(save_checkpoint_steps=steps, keep_checkpoint_max=3)
        callbacks.append(ModelCheckpoint("resnet", options.checkpoint_dir, config))

    if done < options.epochs:
        start = time.perf_counter()
        model.fit(
            options.epochs, train_set, test_set, callbacks=callbacks, dataset_sink_mode=options.sink, initial_epoch=done
        )
        print(f"\ntrained {options.epochs - done} epochs in {time.perf_counter() - start:.1f} s")
        if options.plot:
            monitor.plot(options.plot)
            print(f"picture saved: {options.plot}")
    accuracy = float(model.eval(test_set)["accuracy"])
    print(f"{pictures.said.split(':')[1].split(' (')[0].strip()}; test accuracy {accuracy:.4f}")
    return accuracy


if __name__ == "__main__":
    main()

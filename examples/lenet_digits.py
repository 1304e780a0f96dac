"""LeNet-5 learns real handwritten digits in mixed precision, offline.

The digits are scikit-learn's bundled scans (1,797 images, 8x8), enlarged to 32x32. The script prints which layer
computes in which dtype and why, the progress, the test accuracy, and how the loss scale moved.

    python examples/lenet_digits.py --amp-level O2 --plot digits.png
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import mixtrain
import mixtrain.dataset as ds
import mixtrain.nn as nn
from mixtrain import DynamicLossScaleManager, LossScaleMonitor, Model


class LeNet5(nn.Cell):
    """LeNet-5 for one-channel images of 32x32."""

    def __init__(self, num_class: int = 10, num_channel: int = 1) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(num_channel, 6, 5, pad_mode="valid")
        self.conv2 = nn.Conv2d(6, 16, 5, pad_mode="valid")
        self.relu = nn.ReLU()
        self.max_pool2d = nn.MaxPool2d(kernel_size=2, stride=2)
        self.flatten = nn.Flatten()
        self.fc1 = nn.Dense(16 * 5 * 5, 120)
        self.fc2 = nn.Dense(120, 84)
        self.fc3 = nn.Dense(84, num_class)

    def construct(self, x):
        """Map images (N, 1, 32, 32) to logits (N, num_class)."""
        x = self.max_pool2d(self.relu(self.conv1(x)))
        x = self.max_pool2d(self.relu(self.conv2(x)))
        x = self.flatten(x)
        x = self.relu(self.fc1(x))
        x = self.relu(self.fc2(x))
        return self.fc3(x)


def load_digits() -> tuple[np.ndarray, np.ndarray]:
    """Return the images (1797, 1, 32, 32) in [-1, 1], float32, and the labels (1797,), int32, shuffled."""
    try:
        from sklearn.datasets import load_digits as bundled
    except ImportError as error:
        raise SystemExit(
            "lenet_digits: scikit-learn holds the digits and is not installed. Write: pip install mixtrain[examples]"
        ) from error
    digits = bundled()
    images = digits.images.astype(np.float32) / 8.0 - 1.0
    images = np.kron(images, np.ones((1, 4, 4), np.float32))
    order = np.random.default_rng(0).permutation(len(images))
    return images[order, None], digits.target[order].astype(np.int32)


def parse_arguments() -> argparse.Namespace:
    """Return the command line's options."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--amp-level", default="O2", choices=["O0", "O1", "O2", "O3", "auto"])
    parser.add_argument("--dtype", default="float16", choices=["float16", "bfloat16"], help="the half-precision dtype")
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--sink", action="store_true", help="run each epoch inside one compiled call")
    parser.add_argument("--plot", metavar="PNG", help="save a picture of loss and loss scale over steps")
    return parser.parse_args()


def main() -> float:
    """Train, evaluate, report; return the test accuracy."""
    options = parse_arguments()
    mixtrain.set_seed(1)
    images, labels = load_digits()
    split = len(images) * 4 // 5
    train_set = ds.NumpySlicesDataset((images[:split], labels[:split]), ["image", "label"]).batch(32, True)
    test_set = ds.NumpySlicesDataset((images[split:], labels[split:]), ["image", "label"], shuffle=False).batch(64)

    network = LeNet5()
    scaled = options.amp_level == "O2" and options.dtype == "float16"
    monitor = LossScaleMonitor()
    model = Model(
        network,
        nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean"),
        nn.Momentum(network.trainable_params(), learning_rate=0.02, momentum=0.9),
        metrics={"accuracy"},
        amp_level=options.amp_level,
        cast_model_type=options.dtype,
        loss_scale_manager=DynamicLossScaleManager(scale_window=200) if scaled else None,
    )
    print(model.precision_report(), end="\n\n")

    start = time.perf_counter()
    model.train(options.epochs, train_set, callbacks=[monitor], dataset_sink_mode=options.sink)
    seconds = time.perf_counter() - start
    accuracy = float(model.eval(test_set)["accuracy"])
    print(f"\ntrained {options.epochs} epochs in {seconds:.1f} s; test accuracy {accuracy:.4f}")
    if options.plot:
        monitor.plot(options.plot)
        print(f"picture saved: {options.plot}")
    return accuracy


if __name__ == "__main__":
    main()

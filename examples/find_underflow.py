"""Which gradients does float16 lose? LeNet-5 on digits, its gradients counted and drawn, and what a loss scale saves.

python examples/find_underflow.py --picture underflow.png
"""

from __future__ import annotations

import argparse
import pathlib
import runpy

import mixtrain.dataset as ds
from mixtrain import DynamicLossScaleManager, Model, RangeMonitor, nn, set_seed
from mixtrain.diagnostics import plot_histogram


def main() -> tuple[float, float]:
    """Train, print and draw; return the shares of gradients that float16 flushes without and with loss scaling."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--loss-scale", type=float, default=2.0**16)
    parser.add_argument("--picture", help="file to draw the histogram to")
    options = parser.parse_args()
    set_seed(1)
    lenet = runpy.run_path(str(pathlib.Path(__file__).with_name("lenet_digits.py")))
    train_data = ds.NumpySlicesDataset(lenet["load_digits"](), shuffle=True).batch(32, drop_remainder=True)
    network = lenet["LeNet5"]()
    model = Model(
        network, nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean"),
        nn.Momentum(network.trainable_params(), 0.05, 0.9), amp_level="O2",
        loss_scale_manager=DynamicLossScaleManager(options.loss_scale),
    )
    # Gradients get small as the network learns, so only the last epoch is counted.
    model.train(options.epochs - 1, train_data, verbose=0)
    monitor = RangeMonitor(every=10, values=None)
    model.train(1, train_data, callbacks=[monitor], verbose=0)
    print(monitor.records)
    gradients = [row for row in monitor.records if row.kind == "gradient"]
    total = sum(gradients[1:], start=gradients[0])
    counts = total.counts("float16")
    unscaled = sum(count for exponent, count in total.exponents(unscaled=True).items() if exponent < -24)
    print(f"activation gradients: {counts.zero / total.size:.0%} are 0")
    print(f"  float16 flushes {unscaled / total.size:.1%} of them without loss scaling, "
          f"{counts.flushed / total.size:.1%} at the scale {monitor.loss_scale:.0f}")
    if options.picture:
        plot_histogram(gradients, options.picture)
    return unscaled / total.size, counts.flushed / total.size


if __name__ == "__main__":
    main()

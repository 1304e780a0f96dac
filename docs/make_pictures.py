"""Make pictures of the pages: `python docs/make_pictures.py` trains LeNet-5 on digits and colors a network's plan."""

from __future__ import annotations

import html
import pathlib
import subprocess
import sys

import keras

from mixtrain.amp import plan_precision

DOCS = pathlib.Path(__file__).parent
LEVELS = ("O0", "O1", "O2", "O3")
FILLS = {"float16": "#ffd9a8", "float32": "#cfe2ff"}
WIDTH, HEIGHT, LEFT, TOP = 110, 34, 190, 44  # of a cell, and of the space before the first one


def network() -> keras.Model:
    """Return a network whose layers are treated differently by the levels."""
    return keras.Sequential(
        [
            keras.Input((8, 8, 1)),
            keras.layers.Conv2D(4, 3, name="conv"),
            keras.layers.BatchNormalization(name="norm"),
            keras.layers.ReLU(name="relu"),
            keras.layers.GlobalAveragePooling2D(name="pool"),
            keras.layers.Dense(16, name="dense"),
            keras.layers.Dense(3, activation="softmax", name="head"),
        ]
    )


def colored_by_dtype() -> str:
    """Return an SVG: a row for each layer, a column for each level, colored by what the layer computes in."""
    planned = network()
    plans = {level: plan_precision(planned, level) for level in LEVELS}
    layers = planned.layers
    width, height = LEFT + WIDTH * len(LEVELS) + 10, TOP + HEIGHT * len(layers) + 10
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'font-family="sans-serif" font-size="13">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for column, level in enumerate(LEVELS):
        center = LEFT + WIDTH * column + WIDTH // 2
        parts.append(f'<text x="{center}" y="28" text-anchor="middle" font-weight="bold">{level}</text>')
    for index, layer in enumerate(layers):
        top = TOP + HEIGHT * index
        label = html.escape(f"{layer.name} ({type(layer).__name__})".replace("GlobalAveragePooling2D", "GlobalAvgPool"))
        parts.append(f'<text x="12" y="{top + 21}">{label}</text>')
        for column, level in enumerate(LEVELS):
            dtype = repr(plans[level].row(layer.name).compute_dtype).removeprefix("mixtrain.")
            left = LEFT + WIDTH * column
            parts.append(
                f'<rect x="{left + 3}" y="{top + 3}" width="{WIDTH - 6}" height="{HEIGHT - 6}" rx="5" '
                f'fill="{FILLS[dtype]}" stroke="#555"/>'
                f'<text x="{left + WIDTH // 2}" y="{top + 21}" text-anchor="middle">{dtype}</text>'
            )
    return "\n".join([*parts, "</svg>", ""])


def main() -> None:
    """Write both pictures beside the pages."""
    (DOCS / "levels.svg").write_text(colored_by_dtype())
    example = DOCS.parent / "examples/lenet_digits.py"
    subprocess.run([sys.executable, str(example), "--plot", str(DOCS / "loss_scale.png")], check=True)


if __name__ == "__main__":
    main()

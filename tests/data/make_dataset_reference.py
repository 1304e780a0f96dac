"""What the datasets of `tests/dataset/reference_cases.py` hold in MindSpore 2.10.

Run where mindspore==2.10.0, NumPy 1 and Pillow are installed: ``python tests/data/make_dataset_reference.py``.
"""

from __future__ import annotations

import io
import pathlib
import sys
import tempfile

import mindspore.dataset as ds
import numpy as np
from PIL import Image

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "dataset"))

import reference_cases  # noqa: E402
import samples  # noqa: E402


def main() -> None:
    """Write the JSON of every case, and a JPEG file with its pixels."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        samples.fill(folder, rows=10_000)
        official = samples._cifar_rows(0, 10_000, labels=2)
        (folder / "cifar100" / "train.bin").write_bytes(np.concatenate([official] * 5).tobytes())
        facts = {
            key: np.array(reference_cases.facts_of(case(ds, folder, 10_000)))
            for key, case in reference_cases.CASES.items()
        }
        buffer = io.BytesIO()
        noise = ((np.arange(24 * 20 * 3) * 37) % 256).reshape(24, 20, 3).astype(np.uint8)
        Image.fromarray(noise).resize((31, 17), Image.BICUBIC).save(buffer, "JPEG", quality=80)
        (folder / "jpeg" / "a").mkdir(parents=True)
        (folder / "jpeg" / "a" / "x.jpg").write_bytes(buffer.getvalue())
        row = next(ds.ImageFolderDataset(str(folder / "jpeg"), decode=True).create_tuple_iterator(output_numpy=True))
    np.savez_compressed(
        HERE / "dataset_reference.npz", jpeg_file=np.frombuffer(buffer.getvalue(), np.uint8), jpeg_pixels=row[0],
        **facts,
    )


if __name__ == "__main__":
    main()

"""A look whether the installation computes."""

from __future__ import annotations

import numpy as np

from mixtrain.common.jit import jit
from mixtrain.common.tensor import Tensor
from mixtrain.context import get_context
from mixtrain.version import __version__


def run_check() -> None:
    """Print the version, and whether a compiled product has the right numbers.

    Raises:
        RuntimeError: It has not.

    Example:
        >>> run_check()  # doctest: +ELLIPSIS
        mixtrain version: ...
        The result of multiplication calculation is correct, ...

    Source: MindSpore, `mindspore.run_check`.
    """
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    found = jit(lambda left, right: left @ right)(Tensor(x), Tensor(x.T)).asnumpy()
    print(f"mixtrain version: {__version__}")
    if not np.allclose(found, x @ x.T):
        raise RuntimeError(
            f"run_check: expected the product {(x @ x.T).tolist()}; got {found.tolist()}. Write: pip install "
            "--force-reinstall of the backend's package."
        )
    print(
        "The result of multiplication calculation is correct, mixtrain has been installed on platform "
        f"[{get_context('device_target')}] successfully!"
    )

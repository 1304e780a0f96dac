"""`run_check`: check that the installation works."""

from __future__ import annotations

import numpy as np

from mixtrain.common.jit_function import jit
from mixtrain.common.tensor import Tensor
from mixtrain.context import get_context
from mixtrain.version import __version__


def run_check() -> None:
    """Print the version, and check the result of a compiled matrix product.

    Raises:
        RuntimeError: The product is wrong.

    Example:
        >>> run_check()  # doctest: +ELLIPSIS
        mixtrain version: ...
        The result of multiplication calculation is correct, ...
    """
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    product = jit(lambda left, right: left @ right)(Tensor(x), Tensor(x.T)).asnumpy()
    print(f"mixtrain version: {__version__}")
    if not np.allclose(product, x @ x.T):
        raise RuntimeError(
            f"run_check: expected the product {(x @ x.T).tolist()}; got {product.tolist()}. Write: pip install "
            "--force-reinstall of the backend's package."
        )
    print(
        "The result of multiplication calculation is correct, mixtrain has been installed on platform "
        f"[{get_context('device_target')}] successfully!"
    )

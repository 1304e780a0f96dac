"""Functions of matrices with PyTorch's arguments: `mint.linalg`."""

from mixtrain.lazy_names import serve_names
from mixtrain.mint import products
from mixtrain.mint.named import named

globals().update(named("mint.linalg", products.LINALG))

__all__ = sorted(products.LINALG)

serve_names(__name__)

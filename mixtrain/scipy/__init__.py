"""SciPy's functions with MindSpore's names and arguments: `mixtrain.scipy`, with `fft`, `linalg` and `optimize`."""

from mixtrain.lazy_names import serve_names
from mixtrain.scipy import fft, linalg, optimize

__all__ = ["fft", "linalg", "optimize"]

serve_names(__name__)

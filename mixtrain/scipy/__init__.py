"""SciPy's functions with MindSpore's names and arguments: `mixtrain.scipy`, with `fft` and `linalg`."""

from mixtrain.lazy_names import serve_names
from mixtrain.scipy import fft, linalg

__all__ = ["fft", "linalg"]

serve_names(__name__)

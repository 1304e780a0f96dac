"""Parameters, tensors, initializers and `jit`."""

from mixtrain.lazy_names import serve_names

serve_names(__name__)

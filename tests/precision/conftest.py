"""The reader of the other backend's graphs is not collected: its library need not be there."""

from __future__ import annotations

from tests.backends import ON_TENSORFLOW

collect_ignore = ["jax_graph.py" if ON_TENSORFLOW else "tensorflow_graph.py"]

"""Seeding TensorFlow without dropping the kernels that it has built, which each test would build anew."""

from __future__ import annotations

import contextlib
import importlib
import random
from collections.abc import Iterator
from typing import Final

from tests.backends import ON_TENSORFLOW

# As `mixtrain.set_seed(0)` leaves the generator that seeds TensorFlow's random operations.
_NOTHING_DRAWN: Final = random.Random(0).getstate()


@contextlib.contextmanager
def kept() -> Iterator[None]:
    """Keep the kernels of eager operations while code inside seeds TensorFlow or clears Keras's session.

    Both drop them all, since the kernels of some random operations hold how many numbers were drawn. They are dropped
    here too if a seed was drawn for such an operation; mixtrain and Keras draw by operations without a state.
    """
    context = importlib.import_module("tensorflow.python.eager.context") if ON_TENSORFLOW else None
    if context is None or not hasattr(context.pywrap_tfe, "TFE_ContextClearCaches"):  # Private: it may move.
        yield
        return
    seeds = getattr(context.context(), "_rng", None)  # None before the first seed.
    if seeds is not None and seeds.getstate() != _NOTHING_DRAWN:
        context.context().clear_kernel_cache()
    drop = context.pywrap_tfe.TFE_ContextClearCaches
    context.pywrap_tfe.TFE_ContextClearCaches = lambda handle: None
    try:
        yield
    finally:
        context.pywrap_tfe.TFE_ContextClearCaches = drop

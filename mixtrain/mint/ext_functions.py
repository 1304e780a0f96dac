"""Functions of `mint` by the names that MindSpore's inner modules give them: with an ``_ext`` at their end."""

from __future__ import annotations

from typing import Final

from mixtrain import mint
from mixtrain.mint import linalg
from mixtrain.mint.nn import functional

# A name of two modules is that of the last.
_MODULES: Final = (linalg, functional, mint)

globals().update({
    f"{name}_ext": getattr(module, name) for module in _MODULES for name in module.__all__
    if callable(getattr(module, name)) and name.islower()
})

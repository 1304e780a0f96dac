"""thor says what to use instead."""

from __future__ import annotations

import pytest

import mixtrain.nn as nn


def test_thor_is_refused_with_what_to_use_instead() -> None:
    with pytest.raises(NotImplementedError, match="THOR is not offered. Write nn.Momentum"):
        nn.thor(None, 0.1, damping=0.1, momentum=0.9)

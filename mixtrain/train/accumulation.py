"""Check a Model's `accumulate_steps` and the arguments that exclude it."""

from __future__ import annotations

from mixtrain import checks
from mixtrain.typing import Optimizer


def checked_accumulation(steps: int, optimizer: Optimizer, on_overflow: str) -> int:
    """Return the number of batches per update; raise an error if another argument excludes several."""
    if checks.integer("Model", "accumulate_steps", steps, at_least=1, example=4) == 1:
        return steps
    own = getattr(optimizer, "gradient_accumulation_steps", None)
    for wrong, needed, write in (
        (optimizer is None, "an optimizer", "Model(network, loss_fn, optimizer, accumulate_steps=4)"),
        (own, "an optimizer without gradient_accumulation_steps", f"accumulate_steps={own} alone"),
        (on_overflow == "retry", 'on_overflow="skip"', 'on_overflow="skip", or accumulate_steps=1'),
    ):
        if wrong:
            raise checks.fail_value("Model", f"accumulate_steps needs {needed}", steps, write)
    return steps

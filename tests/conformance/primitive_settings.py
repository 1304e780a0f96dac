"""What MindSpore's primitives take as settings: a recipe, which records of each value whether it is refused, and how.

Where MindSpore is installed, this writes the file that `tests/ops/test_attributes.py` compares with::

    python tests/conformance/primitive_settings.py tests/data/primitive_settings.json
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import itertools
import json
import pathlib
import sys
from typing import Any, Final

# What a setting without a default may be; the first that all of a primitive's take are its own.
POSSIBLE: Final = (
    "1", "2", "1.0", "(1, 1)", "'valid'", "True", "float32", "(1, 1, 1, 1)", "0.5", "[1, 1]", "((0, 0), (0, 0))",
    "(1, 1, 1)",
)
# What each setting is given.
GIVEN: Final = (
    "object()", "-1", "0", "7.1", "'xyz'", "None", "True", "(1, -1)", "[2]", "-0.5", "2", "Tensor(1.0)", "float32",
    "100", "()", "(1, 2, 3, 4, 5, 6)", "(1.5,)",
)
MODULES: Final = ("ops", "ops.operations._grad_ops", "ops.operations")


def values(package: str, texts: tuple[str, ...]) -> list[Any]:
    """Return the values of texts, of a package's types."""
    module = importlib.import_module(package)
    return [eval(text, {"Tensor": module.Tensor, "float32": module.float32}) for text in texts]  # noqa: S307


def outcome(primitive: type, settings: dict[str, Any]) -> str:
    """Return "." if a primitive is made, and else the first letter of the error."""
    try:
        primitive(**settings)
    except Exception as error:
        return type(error).__name__[0]
    return "."


def outcomes(primitive: type, base: dict[str, int], names: list[str], package: str) -> dict[str, str]:
    """Return the outcomes of all values for each setting of a primitive, the others as in `base`."""
    given, possible = values(package, GIVEN), values(package, POSSIBLE)
    own = {name: possible[index] for name, index in base.items()}
    return {name: "".join(outcome(primitive, own | {name: value}) for value in given) for name in names}


def _base(primitive: type, required: list[str], possible: list[Any]) -> dict[str, int] | None:
    for indices in itertools.islice(itertools.product(range(len(possible)), repeat=len(required)), 4000):
        with contextlib.suppress(Exception):
            primitive(**dict(zip(required, [possible[index] for index in indices], strict=True)))
            return dict(zip(required, indices, strict=True))
    return None


def record() -> dict[str, Any]:
    """Return of each primitive of MindSpore its module, the settings that it needs, and all outcomes."""
    from mindspore.ops import Primitive

    result: dict[str, Any] = {}
    for path in MODULES:
        module = importlib.import_module(f"mindspore.{path}")
        for name in sorted(set(dir(module)) - set(result)):
            primitive = getattr(module, name)
            if not (inspect.isclass(primitive) and issubclass(primitive, Primitive)):
                continue
            parameters = list(inspect.signature(primitive.__init__).parameters.values())[1:]
            named = [item for item in parameters if item.kind in (item.POSITIONAL_OR_KEYWORD, item.KEYWORD_ONLY)]
            required = [item.name for item in named if item.default is item.empty]
            base = _base(primitive, required, values("mindspore", POSSIBLE)) if len(required) < 6 else None
            if named and base is not None:
                settings = outcomes(primitive, base, [item.name for item in named], "mindspore")
                result[name] = {"module": path, "base": base, "outcomes": settings}
    return result


if __name__ == "__main__":
    pathlib.Path(sys.argv[1]).write_text(json.dumps(record(), indent=0) + "\n")

"""Writes tensor_reference.json: what MindSpore 2.10 (CPU, PyNative mode) makes of tests/common/tensor_cases.py.

One record a line, `family: {expression: result}`, results as tensor_inputs.recorded writes them. What is refused has
`{"raises": class}`; where only MindSpore's CPU kernel is missing it is `{"lacking": class}`, which tests pass over.
Usage: python make_tensor_reference.py [output.json]
"""

import json
import pathlib
import sys

import mindspore as ms

sys.path.insert(0, str(pathlib.Path(__file__).parents[2]))

from tests.common import tensor_cases, tensor_inputs, tensor_method_cases  # noqa: E402

# How MindSpore says that it has no kernel for this on the CPU, rather than that the arguments do not go together.
NO_KERNEL = (
    "Select CPU operator", "unsupported kernel type", "Unsupported op", "only support Ascend", "support Ascend only",
    "KernelMod Init Failed", "unregistered", "type_id:45 is invalid", "Launch kernel failed", "on this device",
    "Create kernelmod", "Create device context failed", "Not implement", "There is no branch", "should not come here",
    "Trunc should have 1 outputs", "unsupported reduce operation", "this kernel data type", "is not supported on",
    "Registry", "only support decimals", "For 'diff', 'n' must be 1",
)


def refused(error: Exception) -> dict:
    """Return the record of an error."""
    text = str(error)
    lacking = any(words in text for words in NO_KERNEL)
    return {"lacking" if lacking else "raises": next(
        kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "builtins"
    )}


def settle() -> None:
    """Run an operator until it works: an error of a kernel may surface again in what is run next."""
    for _ in range(10):
        try:
            if (ms.Tensor([1.0]) + 1).asnumpy().tolist() == [2.0]:
                return
        except Exception:
            continue
    raise RuntimeError("MindSpore does not recover")


def record(expression: str) -> object:
    """Return what MindSpore makes of an expression; a refusal is tried a second time."""
    for trial in range(2):
        try:
            return tensor_inputs.recorded(tensor_inputs.evaluate(expression, ms), ms)
        except Exception as error:
            found = refused(error)
            reason = " ".join(str(error).split())[:150]
        settle()
    print(f"{expression}: {found} {reason}", flush=True)
    return found


def main() -> None:
    """Evaluate every expression and write the file."""
    ms.set_context(mode=ms.PYNATIVE_MODE)
    ms.runtime.launch_blocking()
    public = {name for name in dir(ms.Tensor) if not name.startswith("_")}
    listed = set(tensor_method_cases.PUBLIC_NAMES)
    assert public == listed, public ^ listed
    families, lines = tensor_cases.families(), []
    for family, expressions in families.items():
        results = {expression: record(expression) for expression in expressions}
        body = ",\n".join(
            f"{json.dumps(name)}: {json.dumps(found, separators=(',', ':'))}" for name, found in results.items()
        )
        lines.append(f"{json.dumps(family)}: {{\n{body}\n}}")
        print(family, len(results), flush=True)
    here = pathlib.Path(__file__).with_name("tensor_reference.json")
    target = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else here
    target.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()

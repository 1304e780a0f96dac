"""Read XLA's text of a compiled GPU program: which kernels it launches, and the bytes that each reads and writes."""

from __future__ import annotations

import collections
import dataclasses
import functools
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

_BITS: Final = {
    "pred": 8, "s4": 4, "u4": 4, "s8": 8, "u8": 8, "f8e4m3fn": 8, "f8e5m2": 8, "s16": 16, "u16": 16, "f16": 16,
    "bf16": 16, "s32": 32, "u32": 32, "f32": 32, "s64": 64, "u64": 64, "f64": 64, "c64": 64, "c128": 128,
}
_SHAPE: Final = re.compile(r"\b(" + "|".join(sorted(_BITS, key=len, reverse=True)) + r")\[([\d,]*)\]")
_COMPUTATION: Final = re.compile(r"^(ENTRY )?%?([\w.\-]+) \(.*\{\s*$")
_INSTRUCTION: Final = re.compile(r"^\s+(ROOT )?%?([\w.\-]+) = (.*)$")
# Operations that launch nothing.
_FREE: Final = frozenset({
    "parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all", "partition-id", "replica-id",
})
# Below this size a kernel takes about as long as its launch.
SMALL: Final = 2**20


@dataclasses.dataclass(frozen=True)
class Instruction:
    """One operation of a computation.

    Attributes:
        name: Its name.
        shape: The text of its shape, a tuple's too.
        opcode: Its operation.
        arguments: The text between its parentheses.
        attributes: The text behind them.
        root: Whether it is the result of its computation.
    """

    name: str
    shape: str
    opcode: str
    arguments: str
    attributes: str
    root: bool

    @property
    def size(self) -> int:
        """Bytes of its result."""
        return sum(math.prod(_dims(dims)) * _BITS[dtype] for dtype, dims in _SHAPE.findall(self.shape)) // 8

    @property
    def operands(self) -> list[str]:
        """Names of its operands."""
        return re.findall(r"%([\w.\-]+)", self.arguments)

    def attribute(self, pattern: str) -> str:
        """Return the first group of a pattern in its attributes; "" without a match."""
        match = re.search(pattern, self.attributes)
        return match[1] if match else ""


Program = Mapping[str, Mapping[str, Instruction]]


@dataclasses.dataclass(frozen=True)
class Kernel:
    """A kernel, copy or library call that a step launches.

    Attributes:
        kind: The target of a library call; else what the kernel does.
        name: The name scope of its operation.
        read: Bytes of its operands, as far as it reads them.
        written: Bytes of its results.
        launches: How often a step launches it: more than once in a loop.
    """

    kind: str
    name: str
    read: int
    written: int
    launches: int = 1

    @property
    def moved(self) -> int:
        """Bytes that it reads and writes in all launches."""
        return (self.read + self.written) * self.launches


def kernels_of(text: str) -> list[Kernel]:
    """Return what a compiled program launches, in its order.

    Of the branches of a conditional the one that moves most counts.
    """
    program, entry = _parse(text)
    return list(_launched(program, entry, 1))


def products_of(text: str) -> tuple[int, int]:
    """Return how many matrix products a compiled program has, and how many of them multiply float8 values."""
    program, _ = _parse(text)
    operands = [
        [computation[name].shape for name in instruction.operands[:2] if name in computation]
        for computation in program.values() for instruction in computation.values()
        if instruction.opcode == "dot" or "__cublas" in instruction.attributes
    ]
    return len(operands), sum(all(shape.startswith("f8") for shape in shapes) for shapes in operands)


def counts(kernels: Iterable[Kernel]) -> dict[str, float]:
    """Return the number of kernels, those that are small, and the GB that they read and write."""
    found = list(kernels)
    return {
        "kernels": sum(kernel.launches for kernel in found),
        "small": sum(kernel.launches for kernel in found if kernel.read + kernel.written < SMALL),
        "gb": 1e-9 * sum(kernel.moved for kernel in found),
    }


def _parse(text: str) -> tuple[Program, str]:
    """Return the computations of a program by name, and the name of the first one that runs.

    Raises:
        ValueError: It has none.
    """
    computations: dict[str, dict[str, Instruction]] = {}
    entry, current = "", None
    for line in text.splitlines():
        head = _COMPUTATION.match(line)
        if head and " = " not in line.partition("->")[0]:
            current = computations[head[2]] = {}
            entry = head[2] if head[1] else entry
        elif current is not None and (match := _INSTRUCTION.match(line)):
            current[match[2]] = _instruction(match[2], match[3], bool(match[1]))
    if not entry:
        raise ValueError("benchmarks.hlo: expected the text of a compiled program, with an ENTRY computation; got none")
    return computations, entry


def _instruction(name: str, text: str, root: bool) -> Instruction:
    """Parse ``SHAPE opcode(arguments), attributes``."""
    shape_end = _closing(text, 0, stop=" ")
    shape, rest = text[:shape_end], text[shape_end + 1 :]
    start = rest.find("(")
    end = _closing(rest, start, stop=")")
    return Instruction(name, shape, rest[:start], rest[start + 1 : end], rest[end + 1 :], root)


def _closing(text: str, start: int, stop: str) -> int:
    """Return the index of the first `stop` from `start` on that is in no parentheses, or that closes the first one."""
    depth = 0
    for index in range(start, len(text)):
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(text[index], 0)
        if depth == 0 and text[index] == stop:
            return index
    return len(text)


def _launched(program: Program, name: str, launches: int) -> Iterator[Kernel]:
    computation = program[name]
    for instruction in computation.values():
        opcode = instruction.opcode
        if opcode in _FREE or opcode.endswith(("-done", "-update")):
            continue
        scope = instruction.attribute(r'op_name="([^"]*)"')
        if opcode == "conditional":
            yield Kernel("conditional", scope, 0, 0, launches)
            branches = [list(_launched(program, branch, launches)) for branch in _branches(instruction)]
            yield from max(branches, key=lambda kernels: sum(kernel.moved for kernel in kernels))
        elif opcode == "while":
            yield Kernel("while", scope, 0, 0, launches)
            trips = instruction.attribute(r'"known_trip_count":\{"n":"(\d+)"')
            yield from _launched(program, instruction.attribute(r"body=%([\w.\-]+)"), launches * int(trips or 1))
        elif opcode in ("call", "async-start") and (called := instruction.attribute(r"to_apply=%([\w.\-]+)")):
            yield from _launched(program, called, launches)
        else:
            yield _kernel(program, computation, instruction, scope, launches)


def _branches(instruction: Instruction) -> list[str]:
    listed = instruction.attribute(r"branch_computations=\{([^}]*)\}")
    return re.findall(r"%([\w.\-]+)", listed) or [
        instruction.attribute(rf"{truth}_computation=%([\w.\-]+)") for truth in ("true", "false")
    ]


def _kernel(
    program: Program, computation: Mapping[str, Instruction], instruction: Instruction, scope: str, launches: int
) -> Kernel:
    sizes = [computation[name].size if name in computation else 0 for name in instruction.operands]
    written, kind = instruction.size, instruction.opcode
    if kind == "custom-call":
        kind = instruction.attribute(r'custom_call_target="([^"]*)"')
    elif kind == "fusion":
        body = program[instruction.attribute(r"calls=%([\w.\-]+)")]
        read = _parameter_bytes(body)
        sizes = [read.get(index, size) for index, size in enumerate(sizes)]
        kind = _kind_of_fusion(body, instruction.attribute(r"kind=k(\w+)"))
        root = next(item for item in body.values() if item.root)
        if root.opcode == "dynamic-update-slice" and root.operands[1] in body:
            written = body[root.operands[1]].size  # It writes into its first operand.
    return Kernel(kind, scope, sum(sizes), written, launches)


def _kind_of_fusion(body: Mapping[str, Instruction], kind: str) -> str:
    opcodes = {item.opcode for item in body.values()}
    work = opcodes - {"parameter", "constant", "convert", "bitcast", "broadcast", "tuple"}
    for opcode in ("dot", "reduce", "scatter"):
        if opcode in opcodes:
            return f"{opcode} fusion"
    if not work:
        return "conversion"
    if work <= {"transpose", "copy"}:
        return "transpose fusion"
    return "pad" if work == {"pad"} else f"{kind.lower()} fusion"


def _parameter_bytes(body: Mapping[str, Instruction]) -> dict[int, int]:
    """Return the bytes that a fused computation reads of each parameter: less than all where it only slices."""
    users = collections.defaultdict(list)
    for instruction in body.values():
        for operand in instruction.operands:
            users[operand].append(instruction)

    @functools.cache
    def share(name: str) -> float:
        using, total = users[name], 0.0
        for user in using:
            if user.opcode in ("slice", "dynamic-slice", "gather") and user.operands[0] == name:
                total += _elements(user) / _elements(body[name])
            elif user.opcode in ("convert", "bitcast"):
                total += share(user.name)
            elif user.opcode != "dynamic-update-slice" or user.operands[0] != name:
                return 1.0
        return min(total, 1.0) if using else 1.0

    return {
        int(item.arguments): int(item.size * share(item.name))
        for item in body.values()
        if item.opcode == "parameter" and not item.shape.startswith("(")
    }


def _elements(instruction: Instruction) -> int:
    match = _SHAPE.search(instruction.shape)
    return max(math.prod(_dims(match[2])), 1) if match else 1


def _dims(text: str) -> list[int]:
    return [int(size) for size in text.split(",") if size]

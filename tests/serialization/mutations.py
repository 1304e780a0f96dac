"""Damaged and hostile checkpoints, by number: bytes changed, structure changed, meaning changed.

Each is malformed by construction. Files with changed structure or meaning get a matching SHA-256, as an attacker would
give them; otherwise the digest alone would refuse them, and no later check would be tested.
"""

from __future__ import annotations

import copy
import hashlib
import json
import random
from collections.abc import Callable
from typing import Any, Final

Header = dict[str, Any]
Change = Callable[[random.Random, Header, bytearray], None]

_DIGEST: Final = 8 + len(b'{"__metadata__":{"mixtrain.checkpoint":"version 2, sha256 ')
_HUGE: Final = [2**31, 2**32, 2**62, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 10**30]
# Values that no fact and no list of names may have.
_WRONG: Final[list[Any]] = [
    True, -1, 1.5, 1e308, 2**63, 10**40, "", "three", "0" * 5000, [], [[]], [1, "a"], {}, {"a": {}}, [None] * 50,
]


def mutant(original: bytes, number: int) -> bytes:
    """Return a malformed file, the same for each number.

    Args:
        original: A checkpoint.
        number: Which mutant of it.
    """
    draw = random.Random(number)
    kind = ("bytes", "structure", "meaning")[number % 3]
    if kind == "bytes":
        return changed_bytes(draw, original)
    header, values = _split(original)
    if kind == "structure":
        if draw.random() < 0.3:
            return draw.choice(_LAYOUTS)(draw, original)
        draw.choice(_STRUCTURE)(draw, header, values)
        return sealed(header, values)
    description = _description(header, values)
    draw.choice(_MEANING)(draw, description)
    return sealed(header, values, json.dumps(description).encode())


# ---- bytes ----------------------------------------------------------------------------------------------------
def changed_bytes(draw: random.Random, original: bytes) -> bytes:
    """Return a file with some bytes changed, removed, inserted or repeated, or with its end cut off."""
    data = bytearray(original)
    for _ in range(draw.choice([1, 1, 2, 8])):
        # Half of the changes go where the parsers look.
        start = draw.randrange(len(data)) if draw.random() < 0.5 else draw.randrange(min(2000, len(data)))
        length = min(draw.choice([1, 1, 4, 64, 1000]), len(data) - start)
        end = start + length
        operation = draw.randrange(7)
        if operation == 0:
            data[start] ^= 1 << draw.randrange(8)
        elif operation == 1:
            data[start:end] = draw.randbytes(length)
        elif operation == 2:
            del data[start:end]
        elif operation == 3:
            data[start:start] = draw.randbytes(length)
        elif operation == 4:
            data[start:end] = bytes([draw.choice([0, 255])]) * length
        elif operation == 5:
            data[start:start] = data[start:end]
        else:
            del data[start:]
        if not data:
            return b""
    return bytes(data) if data != original else original[:-1]


# ---- structure ------------------------------------------------------------------------------------------------
def _split(original: bytes) -> tuple[Header, bytearray]:
    length = int.from_bytes(original[:8], "little")
    return json.loads(original[8:8 + length]), bytearray(original[8 + length:])


def sealed(header: Header, values: bytes, description: bytes | None = None) -> bytes:
    """Return a file with a matching digest, and another description if one is passed."""
    header = copy.deepcopy(header)
    if description is not None:
        start, end = header["mixtrain:description"]["data_offsets"]
        # It moves to the end, where its length disturbs no other tensor.
        values = values[:start] + values[end:] + description
        for entry in header.values():
            if "data_offsets" in entry and entry["data_offsets"][0] >= end:
                entry["data_offsets"] = [position - (end - start) for position in entry["data_offsets"]]
        places = [len(values) - len(description), len(values)]
        header["mixtrain:description"] = {"dtype": "U8", "shape": [len(description)], "data_offsets": places}
    return reseal(with_header(json.dumps(header, separators=(",", ":")).encode(), values))


def with_header(text: bytes, values: bytes, length: int | None = None) -> bytes:
    """Return the bytes of a safetensors file, which may claim another length of its header."""
    text += b" " * (-len(text) % 8)
    return (len(text) if length is None else length).to_bytes(8, "little") + text + bytes(values)


def reseal(data: bytes) -> bytes:
    """Return a file with its correct digest, if it is long enough for one."""
    start = _DIGEST
    blank = data[:start] + b"0" * 64 + data[start + 64:]
    return data[:start] + hashlib.sha256(blank).hexdigest().encode() + data[start + 64:]


def _entry(draw: random.Random, header: Header) -> Header:
    return header[draw.choice([name for name in header if name != "__metadata__"])]


def _wrong_dtype(draw: random.Random, header: Header, values: bytearray) -> None:
    _entry(draw, header)["dtype"] = draw.choice(["F99", "F8_E4M3", "F4", "C64", "", None, 5, "F32\0", "object"])


def _wrong_shape(draw: random.Random, header: Header, values: bytearray) -> None:
    entry = header[draw.choice(["weight", "flags", "scalar", "mixtrain:description"])]
    shapes = [entry["shape"] + [7], [draw.choice(_HUGE)], [2**32, 2**32], [-1], [0.5], "3", None, [[1]], {}]
    entry["shape"] = draw.choice(shapes)


def _wrong_place(draw: random.Random, header: Header, values: bytearray) -> None:
    entry = _entry(draw, header)
    start, end = entry["data_offsets"]
    entry["data_offsets"] = draw.choice([
        [start + 1, end + 1], [end + 1, start], [start, end + draw.randrange(1, 99)], [0, draw.choice(_HUGE)],
        [draw.choice(_HUGE), draw.choice(_HUGE)], [-1, end], [start], [], None, [start, end, end], ["0", "1"],
    ])


def _without_one(draw: random.Random, header: Header, values: bytearray) -> None:
    del header[draw.choice([name for name in header if name != "__metadata__"])]


def _renamed(draw: random.Random, header: Header, values: bytearray) -> None:
    name = draw.choice([name for name in header if name != "__metadata__"])
    header[draw.choice(["", "mixtrain:", "../../etc/passwd", "é" * 1000, "\0"])] = header.pop(name)


def _alias(draw: random.Random, header: Header, values: bytearray) -> None:
    header[f"alias{draw.random()}"] = dict(_entry(draw, header))


def _many_empty(draw: random.Random, header: Header, values: bytearray) -> None:
    empty = {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]}
    header |= {f"empty{number}": empty for number in range(draw.choice([1, 300, 5000]))}


def _long_axes_of_nothing(draw: random.Random, header: Header, values: bytearray) -> None:
    shape = draw.choice([[2**62, 0], [0, 2**40], [0] * 200, [1] * 3000 + [0], [2**63, 0, 2**63]])
    header["empty"]["shape"] = shape


def _more_values(draw: random.Random, header: Header, values: bytearray) -> None:
    values += draw.randbytes(draw.choice([1, 8, 4096]))


def _bool_of_two(draw: random.Random, header: Header, values: bytearray) -> None:
    start, end = header["flags"]["data_offsets"]
    values[draw.randrange(start, end)] = draw.randrange(2, 256)


_STRUCTURE: Final[list[Change]] = [
    _wrong_dtype, _wrong_shape, _wrong_place, _without_one, _renamed, _alias, _many_empty, _long_axes_of_nothing,
    _more_values, _bool_of_two,
]


def _claimed_length(draw: random.Random, original: bytes) -> bytes:
    length = draw.choice([0, 1, 7, 8, 56, len(original), 2**20, 8 * 2**20 + 8, 100_000_001, 2**31, 2**63, 2**64 - 1])
    return reseal(length.to_bytes(8, "little") + original[8:])


def _nested_header(draw: random.Random, original: bytes) -> bytes:
    deep = draw.choice([200, 5000, 100_000])
    start = original[8:_DIGEST + 64] + b'"},"x":'
    return reseal(with_header(start + draw.choice([b"[", b'{"a":']) * deep, b""))


def _broken_header(draw: random.Random, original: bytes) -> bytes:
    length, values = int.from_bytes(original[:8], "little"), _split(original)[1]
    text = bytearray(original[8:8 + length])
    position = draw.randrange(130, len(text))
    instead = draw.choice([b"\xff\xfe", b"\xed\xa0\x80", b'"', b"{", b"\\u0000", b"\\ud800", b"\0"])
    text[position:position + 1] = b"\xff" if text[position:position + 1] == instead else instead
    return reseal(with_header(bytes(text), values))


def _sparse(draw: random.Random, original: bytes) -> bytes:
    return reseal(original + bytes(draw.choice([1, 2**16, 2**20])))


_LAYOUTS: Final = [_claimed_length, _nested_header, _broken_header, _sparse]


# ---- meaning --------------------------------------------------------------------------------------------------
def _description(header: Header, values: bytes) -> Any:
    start, end = header["mixtrain:description"]["data_offsets"]
    return json.loads(bytes(values[start:end]))


def _wrong_fact(draw: random.Random, description: Any) -> None:
    name = draw.choice(["epoch", "step", "batch_num", "keras_epoch"])
    description["facts"][name] = draw.choice(_WRONG + [None])


def _wrong_seed(draw: random.Random, description: Any) -> None:
    seed = description["facts"]["seed"]
    where = draw.choice(["whole", "part", "generator", "state", "stream"])
    if where == "whole":
        description["facts"]["seed"] = draw.choice(_WRONG)
    elif where == "part":
        part = draw.choice(sorted(seed))
        seed[part] = draw.choice([wrong for wrong in _WRONG if not (part == "drawing" and wrong == [])])
    elif where == "generator":
        part = draw.choice(sorted(seed["generator"]))
        seed["generator"][part] = draw.choice([wrong for wrong in _WRONG if wrong not in (0, 1) or wrong is True])
    elif where == "state":
        seed["generator"]["state"][draw.choice(["state", "inc"])] = draw.choice([-1, 2**128, 0.5, "1", None, [], True])
    else:
        seed["drawing"] = draw.choice([
            [None], [[]], [["x", 0]], [["x", 0, [1]]], [[0, 0, [1, 2]]], [["x", 0, [1, 2**32]]], [["x", 0.5, [1, 2]]],
            [["x", 0, [1, -2]]], [["x", 10**30, [1, 2]]], [["x", True, [1, 2]]], [{"x": 1}], [["x", 0, "12"]],
        ])


def _wrong_plan(draw: random.Random, description: Any) -> None:
    plan = description["facts"]["plan"]
    if draw.random() < 0.3:
        description["facts"]["plan"] = draw.choice(_WRONG)
    else:
        part = draw.choice(sorted(plan))
        wrong: list[Any] = [True, 3, None, {}, [1], [[]], [["a"] * 5], [["a"] * 5 + [1]]]
        plan[part] = draw.choice(wrong)
        if draw.random() < 0.2:
            del plan[part]


def _wrong_names(draw: random.Random, description: Any) -> None:
    part = draw.choice(["parameters", "states"])
    names = description[part]
    operation = draw.randrange(5)
    if operation == 0:
        description[part] = draw.choice([wrong for wrong in _WRONG if wrong != []])
    elif operation == 1:
        names.append(draw.choice(names))
    elif operation == 2:
        names.remove(draw.choice(names))
    elif operation == 3:
        names[draw.randrange(len(names))] = draw.choice(["", "other", "\ud800", 3, None, ["weight"], "mixtrain:x"])
    else:
        other = "states" if part == "parameters" else "parameters"
        description[other].append(names.pop(draw.randrange(len(names))))


def _wrong_strings(draw: random.Random, description: Any) -> None:
    description["strings"] = draw.choice([["weight"], ["flags"], ["scalar"], [3], "text", None, ["text", "text"]])


def _wrong_parts(draw: random.Random, description: Any) -> None:
    if draw.random() < 0.5:
        del description[draw.choice(sorted(description))]
    else:
        description[draw.choice(["more", "format", ""])] = draw.choice(_WRONG)


def _wrong_facts(draw: random.Random, description: Any) -> None:
    description["facts"] = draw.choice([None, [], "epoch", 3, [["epoch", 3]]])


def _not_a_number(draw: random.Random, description: Any) -> None:
    description["facts"]["more"] = draw.choice([float("nan"), float("inf"), -float("inf")])


_MEANING: Final = [
    _wrong_fact, _wrong_seed, _wrong_plan, _wrong_names, _wrong_strings, _wrong_parts, _wrong_facts, _not_a_number,
]

"""What a network's `call` or `construct` returns, read from its source: the layers whose outputs it gives."""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import textwrap
import types
from collections.abc import Iterable, Sequence
from typing import Any

from mixtrain.network.passing import name_passes_on


@dataclasses.dataclass(frozen=True, eq=False)
class Origin:
    """One call of an attribute of the network: ``self.head(x)``.

    Attributes:
        attribute: Its name; "" for what is computed in another way.
        given: Where the arguments of the call come from; none for the network's own inputs.
    """

    attribute: str
    given: tuple[Origin, ...] = ()


_ELSEWHERE = Origin("")
_Names = dict[str, tuple[Origin, ...]]


@functools.lru_cache(maxsize=512)
def returned_by(code: types.CodeType) -> tuple[Origin, ...] | None:
    """Return where the outputs of a method come from; None where its source cannot be read.

    Args:
        code: The code of a class's `call` or `construct`.
    """
    try:
        found = ast.parse(textwrap.dedent(inspect.getsource(code))).body[0]
    except (OSError, TypeError, SyntaxError, IndexError):
        return None
    if not isinstance(found, ast.FunctionDef) or not found.args.args:
        return None
    reader = _Reader(found.args.args[0].arg)
    arguments = [*found.args.posonlyargs, *found.args.args[1:], *found.args.kwonlyargs]
    reader.read(found.body, {argument.arg: () for argument in arguments})
    return tuple(reader.returned)


class _Reader:
    """Follows the names of one method from line to line.

    Args:
        me: What the method calls its object.
    """

    def __init__(self, me: str) -> None:
        self._me = me
        self.returned: list[Origin] = []

    def read(self, lines: Iterable[ast.stmt], names: _Names) -> None:
        """Follow lines; `names` tells where the values of names come from, and is moved on."""
        for line in lines:
            if isinstance(line, ast.Return) and line.value is not None:
                self.returned += self._from(line.value, names)
            elif isinstance(line, (ast.Assign, ast.AnnAssign, ast.AugAssign)) and line.value is not None:
                whole = (_ELSEWHERE,) if isinstance(line, ast.AugAssign) else self._from(line.value, names)
                for target in line.targets if isinstance(line, ast.Assign) else [line.target]:
                    self._assign(target, line.value, whole, names)
            elif isinstance(line, (ast.For, ast.While, ast.If, ast.With, ast.Try)):
                self._branch(line, names)

    def _assign(self, target: ast.expr, value: ast.expr, whole: tuple[Origin, ...], names: _Names) -> None:
        if isinstance(target, (ast.Tuple, ast.List)):
            pairs = isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts)
            for index, part in enumerate(target.elts):
                inner = value.elts[index] if pairs and isinstance(value, (ast.Tuple, ast.List)) else value
                self._assign(part, inner, self._from(inner, names) if pairs else whole, names)
        elif isinstance(target, ast.Name):
            names[target.id] = whole

    def _branch(self, line: Any, names: _Names) -> None:
        """Follow each block of a compound statement, and take together what it may leave in the names."""
        before = dict(names)
        if isinstance(line, ast.For) and isinstance(line.target, ast.Name):
            # for layer in self.layers: what is called in the loop is one of these.
            names[line.target.id] = self._from(line.iter, names)
        blocks = [getattr(line, part, []) for part in ("body", "orelse", "finalbody")]
        blocks += [handler.body for handler in getattr(line, "handlers", [])]
        kept = [before] if not isinstance(line, ast.With) and not (isinstance(line, ast.If) and line.orelse) else []
        for block in blocks:
            if block:
                kept.append(dict(names))
                self.read(block, kept[-1])
        for name in {name for one in kept for name in one}:
            origins = [origin for one in kept for origin in one.get(name, ())]
            names[name] = tuple({id(origin): origin for origin in origins}.values())

    def _from(self, value: ast.expr | None, names: _Names) -> tuple[Origin, ...]:
        """Return where the value of an expression comes from."""
        if isinstance(value, ast.Constant):
            return ()
        if isinstance(value, ast.Name):
            return names.get(value.id, (_ELSEWHERE,))
        if isinstance(value, (ast.Tuple, ast.List)):
            return self._all(value.elts, names)
        if isinstance(value, ast.Dict):
            return self._all(value.values, names)
        if isinstance(value, ast.IfExp):
            return self._all([value.body, value.orelse], names)
        if isinstance(value, (ast.Subscript, ast.Starred, ast.NamedExpr)):
            return self._from(value.value, names)
        if isinstance(value, ast.Attribute) and isinstance(value.value, ast.Name) and value.value.id == self._me:
            return (Origin(value.attr),)
        if isinstance(value, ast.Call):
            return self._call(value, names)
        return (_ELSEWHERE,)

    def _call(self, call: ast.Call, names: _Names) -> tuple[Origin, ...]:
        function = call.func
        given = self._all(call.args, names) if call.args else ()
        if isinstance(function, ast.Attribute) and not _is_name(function.value, self._me):
            if name_passes_on(function.attr):  # ops.reshape(x, ...), x.squeeze()
                receiver = self._from(function.value, names)
                return self._all(call.args[:1], names) if _ELSEWHERE in receiver else receiver
            return (_ELSEWHERE,)
        if isinstance(function, ast.Name) and function.id not in names:
            return self._all(call.args[:1], names) if name_passes_on(function.id) else (_ELSEWHERE,)
        called = self._from(function, names)  # self.head(x), self.blocks[-1](x), a layer of a loop
        return tuple(Origin(origin.attribute, given) for origin in called)

    def _all(self, values: Sequence[ast.expr | None], names: _Names) -> tuple[Origin, ...]:
        return tuple(origin for value in values for origin in self._from(value, names))


def _is_name(value: ast.expr, name: str) -> bool:
    return isinstance(value, ast.Name) and value.id == name

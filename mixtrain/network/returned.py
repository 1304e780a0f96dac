"""The layers whose outputs a network's `call` or `construct` returns, read from its source."""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import textwrap
import types
from collections.abc import Iterable, Sequence

from mixtrain.network.value_preserving import name_passes_on


@dataclasses.dataclass(frozen=True, eq=False)
class Origin:
    """One call of an attribute of the network: ``self.head(x)``.

    Attributes:
        attribute: Its name; "" for a value computed in another way.
        inputs: The origins of the arguments of the call; none for the network's own inputs.
    """

    attribute: str
    inputs: tuple[Origin, ...] = ()


_ELSEWHERE = Origin("")
_Names = dict[str, tuple[Origin, ...]]


@functools.lru_cache(maxsize=512)
def returned_by(code: types.CodeType) -> tuple[Origin, ...] | None:
    """Return the origins of the outputs of a method; None if its source cannot be read.

    `code`: The code of a class's `call` or `construct`.
    """
    try:
        function = ast.parse(textwrap.dedent(inspect.getsource(code))).body[0]
    except (OSError, TypeError, SyntaxError, IndexError):
        return None
    if not isinstance(function, ast.FunctionDef) or not function.args.args:
        return None
    reader = _Reader(function.args.args[0].arg)
    arguments = [*function.args.posonlyargs, *function.args.args[1:], *function.args.kwonlyargs]
    reader.read(function.body, {argument.arg: () for argument in arguments})
    return tuple(reader.returned)


class _Reader:
    """Tracks the origins of the names of one method, statement by statement.

    `self_name`: The name of the method's first parameter.
    """

    def __init__(self, self_name: str) -> None:
        self._self_name = self_name
        self.returned: list[Origin] = []

    def read(self, statements: Iterable[ast.stmt], names: _Names) -> None:
        """Read statements, and update `names`, the origins of the values of names."""
        for statement in statements:
            if isinstance(statement, ast.Return) and statement.value is not None:
                self.returned += self._origins(statement.value, names)
            elif isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign)) and statement.value is not None:
                augmented = isinstance(statement, ast.AugAssign)
                origins = (_ELSEWHERE,) if augmented else self._origins(statement.value, names)
                for target in statement.targets if isinstance(statement, ast.Assign) else [statement.target]:
                    self._assign(target, statement.value, origins, names)
            elif isinstance(statement, (ast.For, ast.While, ast.If, ast.With, ast.Try)):
                self._branch(statement, names)

    def _assign(self, target: ast.expr, value: ast.expr, origins: tuple[Origin, ...], names: _Names) -> None:
        if isinstance(target, (ast.Tuple, ast.List)):
            pairs = isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts)
            for index, element in enumerate(target.elts):
                inner = value.elts[index] if pairs and isinstance(value, (ast.Tuple, ast.List)) else value
                self._assign(element, inner, self._origins(inner, names) if pairs else origins, names)
        elif isinstance(target, ast.Name):
            names[target.id] = origins

    def _branch(self, statement: ast.For | ast.While | ast.If | ast.With | ast.Try, names: _Names) -> None:
        """Read each block of a compound statement, and merge the names after all of them."""
        before = dict(names)
        if isinstance(statement, ast.For) and isinstance(statement.target, ast.Name):
            # for layer in self.layers: a layer called in the loop is one of these.
            names[statement.target.id] = self._origins(statement.iter, names)
        blocks = [getattr(statement, field, []) for field in ("body", "orelse", "finalbody")]
        blocks += [handler.body for handler in getattr(statement, "handlers", [])]
        # Only `with`, and `if` with an `else`, run at least one of their blocks.
        runs_a_block = isinstance(statement, ast.With) or isinstance(statement, ast.If) and statement.orelse
        branches = [] if runs_a_block else [before]
        for block in blocks:
            if block:
                branches.append(dict(names))
                self.read(block, branches[-1])
        for name in {name for branch in branches for name in branch}:
            origins = [origin for branch in branches for origin in branch.get(name, ())]
            names[name] = tuple({id(origin): origin for origin in origins}.values())

    def _origins(self, value: ast.expr | None, names: _Names) -> tuple[Origin, ...]:
        """Return the origins of the value of an expression."""
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
            return self._origins(value.value, names)
        if isinstance(value, ast.Attribute) and _is_name(value.value, self._self_name):
            return (Origin(value.attr),)
        if isinstance(value, ast.Call):
            return self._call(value, names)
        return (_ELSEWHERE,)

    def _call(self, call: ast.Call, names: _Names) -> tuple[Origin, ...]:
        function = call.func
        inputs = self._all(call.args, names)
        if isinstance(function, ast.Attribute) and not _is_name(function.value, self._self_name):
            if name_passes_on(function.attr):  # ops.reshape(x, ...), x.squeeze()
                receiver = self._origins(function.value, names)
                return self._all(call.args[:1], names) if _ELSEWHERE in receiver else receiver
            return (_ELSEWHERE,)
        if isinstance(function, ast.Name) and function.id not in names:
            return self._all(call.args[:1], names) if name_passes_on(function.id) else (_ELSEWHERE,)
        called = self._origins(function, names)  # self.head(x), self.blocks[-1](x), a layer of a loop
        return tuple(Origin(origin.attribute, inputs) for origin in called)

    def _all(self, values: Sequence[ast.expr | None], names: _Names) -> tuple[Origin, ...]:
        return tuple(origin for value in values for origin in self._origins(value, names))


def _is_name(value: ast.expr, name: str) -> bool:
    return isinstance(value, ast.Name) and value.id == name

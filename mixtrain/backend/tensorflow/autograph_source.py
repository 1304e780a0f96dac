"""Functions rewritten as AutoGraph needs them: every branch of an ``if`` returns, loops set items by a call."""

from __future__ import annotations

import ast
import copy
import functools
import inspect
import linecache
import textwrap
import types
from collections.abc import Callable, Sequence
from typing import Any, Final

# The statements after an `if` are copied into each of its branches, which grows fast in a chain of them.
_MAX_STATEMENTS: Final = 200
_SCOPES: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def prepared(function: types.FunctionType) -> Callable[..., Any]:
    """Return a function whose statements after an ``if`` that returns are in its branches, and whose loops set items by
    calls.

    AutoGraph takes ``x[i]`` for a variable, which has no value after the loop that changes ``i``. It refuses ``if a:
    return x`` and ``elif b: return y`` followed by ``return z``, where a tensor decides: "the else branch must also
    have a return statement". It accepts them with ``else: return z``.

    Returns: The rewritten function, with the same globals, defaults and closure; or the function itself, where there is
    no such ``if`` and no such item, or where it uses private names of a class (``self.__x``), which would not be
    mangled.
    """
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    definition = tree.body[0]
    if not isinstance(definition, ast.FunctionDef) or any(map(_is_private, ast.walk(definition))):
        return function
    items = _ItemsOfLoops()
    items.visit(definition)
    if not items.found and not any(isinstance(node, ast.If) and _returns_somewhere(node) for node in definition.body):
        return function
    definition.body = _in_branches(definition.body)
    if sum(isinstance(node, ast.stmt) for node in ast.walk(definition)) > _MAX_STATEMENTS:
        return function
    definition.decorator_list = []
    return _compiled(definition, function)


class _ItemsOfLoops(ast.NodeTransformer):
    """Replaces ``x[i] = y`` and ``x[i] += y`` in loops by ``x.__setitem__(i, ...)``, unless the index is constant."""

    found, _loops = False, 0

    def visit(self, node: ast.AST) -> Any:
        """Return what replaces a node."""
        if not isinstance(node, (ast.For, ast.While)):
            return super().visit(node)
        self._loops += 1
        try:
            return self.generic_visit(node)
        finally:
            self._loops -= 1

    def visit_Assign(self, node: ast.Assign) -> ast.stmt:  # noqa: N802
        return self._set(node, node.targets[0], node.value) if len(node.targets) == 1 else node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:  # noqa: N802
        value = copy.deepcopy(node.target)
        value.ctx = ast.Load()
        return self._set(node, node.target, ast.BinOp(value, node.op, node.value))

    def _set(self, node: ast.stmt, target: ast.expr, value: ast.expr) -> ast.stmt:
        if not self._loops or not isinstance(target, ast.Subscript) or isinstance(target.slice, ast.Constant):
            return node
        if any(isinstance(part, (ast.Call, ast.NamedExpr)) for part in ast.walk(target)):
            return node  # Which must be called once.
        self.found = True
        indices = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
        keys = [_index(index) for index in indices]
        key = ast.Tuple(keys, ast.Load()) if isinstance(target.slice, ast.Tuple) else keys[0]
        return ast.Expr(ast.Call(ast.Attribute(target.value, "__setitem__", ast.Load()), [key, value], []))


def _index(index: ast.expr) -> ast.expr:
    if not isinstance(index, ast.Slice):
        return index
    ends = [part or ast.Constant(None) for part in (index.lower, index.upper, index.step)]
    return ast.Call(ast.Name("slice", ast.Load()), ends, [])


def _in_branches(statements: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Return the last statements of a function with all statements after a returning ``if`` moved into its branches."""
    for index, statement in enumerate(statements):
        if isinstance(statement, ast.Return):
            return list(statements[: index + 1])
        if isinstance(statement, ast.If) and _returns_somewhere(statement):
            rest = statements[index + 1 :]
            branches = ([*branch, *copy.deepcopy(rest)] for branch in (statement.body, statement.orelse))
            body, orelse = map(_in_branches, branches)
            return [*statements[:index], ast.If(statement.test, body, orelse)]
    return list(statements)


def _returns_somewhere(node: ast.AST) -> bool:
    """Whether a statement has a ``return`` of its function; those in loops are left to AutoGraph."""
    if isinstance(node, ast.Return):
        return True
    if isinstance(node, (*_SCOPES, ast.For, ast.While, ast.With, ast.Try)):
        return False
    return any(map(_returns_somewhere, ast.iter_child_nodes(node)))


def _is_private(node: ast.AST) -> bool:
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return name.startswith("__") and not name.endswith("__")


def _compiled(definition: ast.FunctionDef, function: types.FunctionType) -> Callable[..., Any]:
    """Compile a definition to a function like another one, whose source can be read too."""
    free = function.__code__.co_freevars
    arguments = ast.arguments([], [ast.arg(name) for name in free], None, [], [], None, [])
    returned = ast.Return(ast.Name(definition.name, ast.Load()))
    outer = ast.FunctionDef("outer", arguments, [definition, returned], [])
    text = ast.unparse(ast.fix_missing_locations(ast.Module([outer], [])))
    filename = f"<{function.__module__}.{function.__qualname__}, prepared>"
    linecache.cache[filename] = len(text), None, text.splitlines(keepends=True), filename
    namespace: dict[str, Any] = {}
    exec(compile(text, filename, "exec"), namespace)
    code = namespace["outer"](*free).__code__
    cells = dict(zip(free, function.__closure__ or (), strict=True))
    closure = tuple(cells[name] for name in code.co_freevars)
    return with_code(function, code, closure)


def with_code(
    function: types.FunctionType, code: types.CodeType, closure: tuple[types.CellType, ...]
) -> types.FunctionType:
    """Return a copy of a function with other code and its closure."""
    result = types.FunctionType(code, function.__globals__, function.__name__, function.__defaults__, closure)
    result.__kwdefaults__ = function.__kwdefaults__
    functools.update_wrapper(result, function)
    del result.__wrapped__  # type: ignore[attr-defined]  # `inspect` must find the source of the new code.
    return result

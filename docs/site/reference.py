"""Write the reference: a page for each public class and function, from its signature and docstring at run time."""

from __future__ import annotations

import importlib
import inspect
import itertools
import json
import pathlib
import re
import textwrap
from typing import Any

from mkdocs.exceptions import PluginError

_SECTION = re.compile(r"^(Args|Returns|Raises|Yields|Attributes|Inputs|Outputs|Examples?|Source):(.*)$")
_ENTRY = re.compile(r"^(\*{0,2}[\w., *`]+?)(?: \(([^)]*)\))?: (.*)$", re.DOTALL)
# Modules whose names are MindSpore's, but for `_OWN`; the docstring of such a name does not repeat where it is from.
_MINDSPORE = re.compile(
    r"mixtrain(\.(amp|communication|dataset(\.\w+)?|experimental\..*|mindrecord|nn(\.metrics)?|numpy|ops|scipy(\.\w+)?"
    r"|train(\.callback)?))?$"
)
_OWN = {
    "AppliedPlan", "CallbackList", "CellLayer", "CheckpointError", "EpochHistory", "KerasCell", "KerasMetric",
    "LossScaleExhausted", "LossScaleMonitor", "LossScaleRecords", "MetricLike", "MetricsLogger", "MixtrainError",
    "OperatorTable", "OverflowMonitor", "OverflowRecord", "PlanRow", "PrecisionPlan", "PrecisionRuleError",
    "RangeMonitor", "StepRecords", "UnsupportedBackendError", "applied_plan", "apply_plan", "as_metrics",
    "calibrate_loss_scale", "list_operators", "load_latest_checkpoint", "suggest_rules", "tune",
}
_LISTS = ("Args", "Raises", "Attributes", "Inputs")


def reference_pages(frozen: pathlib.Path) -> dict[str, str]:
    """Return the Markdown of each page of the reference, by its place in the site.

    Args:
        frozen: The JSON file with the public names of each module.

    Raises:
        PluginError: A public name has no docstring.
    """
    modules: dict[str, list[str]] = json.loads(frozen.read_text())
    pages: dict[str, str] = {}
    homes: dict[int, tuple[str, str]] = {}  # object -> (page, the name under which it has a page)
    aliases: dict[int, list[str]] = {}
    undocumented: list[str] = []
    for module, names in modules.items():
        space = importlib.import_module(module)
        used: set[str] = set()
        for name in names:
            found = getattr(space, name)
            if not _has_page(found):
                continue
            if not _own_doc(found):
                undocumented.append(f"{module}.{name}")
            aliases.setdefault(id(found), []).append(f"{module}.{name}")
            if id(found) not in homes:
                # Some file systems take Abs.html and abs.html for one file.
                slugs = (f"{name}-{number}" if number else name for number in itertools.count())
                slug = next(slug for slug in slugs if slug.lower() not in used)
                used.add(slug.lower())
                homes[id(found)] = (f"{module}/{slug}.md", f"{module}.{name}")
    if undocumented:
        raise PluginError(f"public names without a docstring: {', '.join(undocumented)}")
    rows = []
    for module, names in modules.items():
        space = importlib.import_module(module)
        rows.append(f"| [`{module}`]({module}.md) | {_summary(space)} | {len(names)} |")
        pages[f"reference/{module}.md"] = _module_page(module, names, homes, set(modules))
        for name in names:
            found = getattr(space, name)
            if _has_page(found) and homes[id(found)][1] == f"{module}.{name}":
                page = _name_page(f"{module}.{name}", found, aliases[id(found)][1:])
                pages[f"reference/{homes[id(found)][0]}"] = page
    pages["reference/index.md"] = "\n".join([
        "# Reference", "",
        "Every public name has a page, written from its docstring. The search finds names from any page.", "",
        "| module | what it has | names |", "|---|---|---|", *rows, "",
    ])
    return pages


def _has_page(found: Any) -> bool:
    return callable(found) and not inspect.ismodule(found)


def _own_doc(found: Any) -> str:
    doc = found.__dict__.get("__doc__") if inspect.isclass(found) else getattr(found, "__doc__", None)
    return inspect.cleandoc(doc or "")


def _summary(found: Any) -> str:
    first = inspect.cleandoc(found.__doc__ or "").split("\n\n")[0].replace("\n", " ")
    return first.replace("|", "\\|")


def _module_page(module: str, names: list[str], homes: dict[int, tuple[str, str]], modules: set[str]) -> str:
    space = importlib.import_module(module)
    kinds: dict[str, list[str]] = {"Classes": [], "Functions": [], "Modules": [], "Constants": []}
    for name in names:
        found = getattr(space, name)
        if inspect.ismodule(found):
            target = next((known for known in (f"{module}.{name}", found.__name__) if known in modules), None)
            shown = f"[`{name}`]({target}.md)" if target else f"`{name}`"
            kinds["Modules"].append(f"| {shown} | {_summary(found)} |")
        elif callable(found):
            kind = "Classes" if inspect.isclass(found) else "Functions"
            kinds[kind].append(f"| [`{name}`]({homes[id(found)][0]}) | {_summary(found)} |")
        else:
            value = re.sub(r"<.* object at .*>", type(found).__name__, repr(found))
            kinds["Constants"].append(f"| `{name}` | `{value}` |")
    lines = [f"# {module}", "", inspect.cleandoc(space.__doc__ or "").split("\n\n")[0], ""]
    for kind, rows in kinds.items():
        if rows:
            lines += [f"## {kind}", "", "| name | |", "|---|---|", *rows, ""]
    return "\n".join(lines)


def _name_page(dotted: str, found: Any, others: list[str]) -> str:
    module, _, name = dotted.rpartition(".")
    lines = [f"# {name}", "", f"[`{module}`](../{module}.md)", ""]
    lines += [_signature(dotted, found), "", _body(_own_doc(found))]
    if "Source:" not in _own_doc(found):
        lines += _source(max((dotted, *others), key=lambda path: path.count(".")))
    if others:
        lines += ["", f"Also {', '.join(f'`{other}`' for other in others)}."]
    if inspect.isclass(found):
        members = {
            key: member for key, member in vars(found).items() if not key.startswith("_") and _member_doc(member)
        }
        for key, member in members.items():
            function = member.__func__ if isinstance(member, (classmethod, staticmethod)) else member
            title = _signature(key, function) if inspect.isfunction(function) else ""
            lines += ["", f"## {key}", "", title, "", _body(_member_doc(member))]
    return "\n".join(lines) + "\n"


def _source(dotted: str) -> list[str]:
    """Return the lines that name MindSpore's object of the same path, where there is one."""
    module, _, name = dotted.rpartition(".")
    if name in _OWN or not _MINDSPORE.match(module):
        return []
    return ["", f"**Source**\n\nMindSpore, `mindspore{dotted.removeprefix('mixtrain')}`."]


def _member_doc(member: Any) -> str:
    if isinstance(member, (classmethod, staticmethod)):
        member = member.__func__
    if inspect.isfunction(member) or isinstance(member, property):
        return inspect.cleandoc(member.__doc__ or "")
    return ""


def _signature(name: str, found: Any) -> str:
    try:
        signature = inspect.signature(found)
    except (TypeError, ValueError):
        return f"```python\n{name}(...)\n```"
    arguments = [re.sub(r" at 0x[0-9a-f]+", "", str(argument)) for argument in _with_marks(signature)]
    nothing = inspect.isclass(found) or signature.return_annotation is signature.empty
    returns = "" if nothing else f" -> {_word(signature.return_annotation)}"
    line = f"{name}({', '.join(arguments)}){returns}"
    if len(line) > 88:
        line = f"{name}(\n" + "".join(f"    {argument},\n" for argument in arguments) + f"){returns}"
    return f"```python\n{line}\n```"


def _argument(argument: inspect.Parameter) -> str:
    """Return an argument as it is written; an annotation that is a string lost its quotes by `from __future__`."""
    if not isinstance(argument.annotation, str):
        return str(argument)
    bare = str(argument.replace(annotation=argument.empty, default=argument.empty))
    default = "" if argument.default is argument.empty else f" = {argument.default!r}"
    return f"{bare}: {argument.annotation}{default}"


def _word(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))


def _with_marks(signature: inspect.Signature) -> list[str]:
    """Return the arguments as they are written, with `/` and `*` between them."""
    shown: list[str] = []
    positional = starred = False
    for key, argument in signature.parameters.items():
        if positional and argument.kind is not argument.POSITIONAL_ONLY:
            shown.append("/")
            positional = False
        positional = argument.kind is argument.POSITIONAL_ONLY
        if argument.kind is argument.KEYWORD_ONLY and not starred:
            shown.append("*")
        starred = starred or argument.kind in (argument.VAR_POSITIONAL, argument.KEYWORD_ONLY)
        if key != "self":
            shown.append(_argument(argument))
    return shown + ["/"] * positional


def _body(doc: str) -> str:
    """Return a docstring in Google's style as Markdown."""
    lines: list[str] = []
    section, block = "", []

    def close() -> None:
        text = textwrap.dedent("\n".join(block)).strip("\n")
        lines.append(_section(section, text) if section else text)

    for line in doc.splitlines():
        opening = _SECTION.match(line)
        if opening:
            close()
            section, block = opening[1], [opening[2].strip()] if opening[2].strip() else []
        elif section and line and not line.startswith(" "):
            close()
            section, block = "", [line]
        else:
            block.append(line)
    close()
    return "\n\n".join(lines)


def _section(section: str, text: str) -> str:
    if section.startswith("Example") and ">>>" in text:
        return f"**{section}**\n\n```pycon\n{text}\n```"
    if section not in _LISTS:
        return f"**{section}**\n\n{text}"
    entries: list[list[str]] = []
    for line in text.splitlines():
        if line and not line.startswith(" "):
            entries.append([line])
        elif entries:
            entries[-1].append(line.strip())
    return f"**{section}**\n\n" + "\n".join(f"- {_entry(' '.join(entry).strip())}" for entry in entries)


def _entry(text: str) -> str:
    named = _ENTRY.match(text)
    if named is None:
        return text
    name, kind, rest = named.groups()
    return f"`{name.strip('`')}`{f' ({kind})' if kind else ''}: {rest}"

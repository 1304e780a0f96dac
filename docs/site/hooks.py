"""Add the pages that lie outside `docs/`, and the reference, to the site, and point links at them."""

from __future__ import annotations

import pathlib
import posixpath
import re
import sys
from typing import Any

from mkdocs.structure.files import File, Files

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from reference import reference_pages  # noqa: E402

ROOT = pathlib.Path(__file__).parents[2]
# Files of the repository that are pages of the site, by the page's place in it.
OUTSIDE = {
    "readme.md": "README.md", "changelog.md": "CHANGELOG.md", "security.md": "SECURITY.md", "license.md": "LICENSE",
}
PAGE_OF = {source: page for page, source in OUTSIDE.items()}
_LINK = re.compile(r"(\]\()([^)\s#:]+)((?:#[^)\s]*)?\))")


def on_files(files: Files, config: Any) -> Files:
    """Add generated pages: those outside `docs/`, one for each public name, and the style sheet."""
    for page, source in OUTSIDE.items():
        text = (ROOT / source).read_text()
        if source == "LICENSE":
            text = f"# License\n\n```text\n{text}\n```\n"
        files.append(File.generated(config, page, content=text))
    style = (ROOT / "docs/site/site.css").read_text()
    files.append(File.generated(config, "stylesheets/site.css", content=style))
    for page, text in reference_pages(ROOT / "tests/structure/public_names.json").items():
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Point links between files of the repository at the pages of the site."""
    here = page.file.src_uri
    if here.startswith("reference/"):
        return markdown
    folder = posixpath.dirname(OUTSIDE.get(here, f"docs/{here}"))

    def link(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(folder, match[2]))
        inside = PAGE_OF.get(target, target.removeprefix("docs/"))
        return match[1] + posixpath.relpath(inside, posixpath.dirname(here) or ".") + match[3]

    # Blocks of code are left as they are.
    parts = re.split(r"(^```.*?^```$)", markdown, flags=re.DOTALL | re.MULTILINE)
    return "".join(part if part.startswith("```") else _LINK.sub(link, part) for part in parts)

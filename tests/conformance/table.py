"""The conformance table: document, mode, block and result, printed at the end of a run."""

from __future__ import annotations

from typing import Any

KEY = "conformance"


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print the rows that the tests left on their reports."""
    rows = {
        value
        for reports in terminalreporter.stats.values()
        for report in reports
        for key, value in getattr(report, "user_properties", ())
        if key == KEY
    }
    if rows:
        terminalreporter.write_sep("-", "seed documents")
        terminalreporter.write_line(f"{'document':9}{'mode':10}{'block':>5}{'line':>6}  result")
        for document, mode, number, line, result in sorted(rows):
            terminalreporter.write_line(f"{document:9}{mode:10}{number:5}{line:6}  {result}")

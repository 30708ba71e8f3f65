"""The table of precision and recall in the documentation is what the passes give today."""

from __future__ import annotations

from benchmarks.diagnosis.__main__ import PAGE, page_tables, page_with


def test_the_tables_are_true() -> None:
    """``python -m benchmarks.diagnosis --page`` writes them; review the difference."""
    assert PAGE.read_text("utf-8") == page_with(page_tables())

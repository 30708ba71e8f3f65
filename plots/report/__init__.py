"""The page, the Markdown and the machine-readable files of a post-mortem."""

from __future__ import annotations

from afterrun.plots.report.files import findings_schema
from afterrun.plots.report.write import write_report

__all__ = ["findings_schema", "write_report"]

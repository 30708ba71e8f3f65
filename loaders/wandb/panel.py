"""The columns of a W&B chart export: which run and which metric each one is, and which are bands.

The first column is the chart's x axis, every other one is called ``<run or group> - <metric>`` and followed by
``...__MIN`` and ``...__MAX``. Runs and metrics may have ``" - "`` in their names, so where a name divides is
decided for all columns together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

BETWEEN = " - "
LOW, HIGH = "__MIN", "__MAX"


@dataclass(frozen=True, slots=True)
class PanelColumn:
    """One curve: its place in the table, its names, and the places of its band, None where it has none."""

    at: int
    run: str
    metric: str
    low: int | None
    high: int | None


def looks_like_panel(names: Sequence[str]) -> bool:
    """Whether these are the columns of a chart export."""
    curves = names[1:]
    divided = bool(curves) and all(BETWEEN in name for name in curves) and BETWEEN not in names[0]
    return divided and (any(name.endswith(LOW) for name in curves) or names[0] == "Step")


def panel_columns(labels: Sequence[str]) -> list[PanelColumn]:
    """The curves of a table with these labels; two of one run and metric are told apart by a number."""
    places: list[tuple[int, int | None, int | None]] = []
    at = 1
    while at < len(labels):
        following = {labels[i]: i for i in (at + 1, at + 2) if i < len(labels)}
        low, high = following.get(labels[at] + LOW), following.get(labels[at] + HIGH)
        places.append((at, low, high))
        at += 1 + (low is not None) + (high is not None)
    names = divided([labels[p[0]] for p in places])
    seen: dict[tuple[str, str], int] = {}
    columns = []
    for (at, low, high), (run, metric) in zip(places, names, strict=True):
        seen[run, metric] = number = seen.get((run, metric), 0) + 1
        columns.append(PanelColumn(at, run if number == 1 else f"{run}~{number}", metric, low, high))
    return columns


def divided(labels: Sequence[str]) -> list[tuple[str, str]]:
    """(run, metric) of each label.

    All labels are divided at the same place, counted from the end or from the beginning. A division is good
    where every run has every metric, and the better the fewer different names it makes; the last ``" - "`` is
    the one to divide at where nothing speaks against it.
    """
    most = max((label.count(BETWEEN) for label in labels), default=0)
    choices = [[_divide(label, n, from_end=True) for label in labels] for n in range(1, most + 1)]
    choices += [[_divide(label, n, from_end=False) for label in labels] for n in range(1, most + 1)]
    return min(choices, key=_untidiness, default=[("", label) for label in labels])


def _divide(label: str, n: int, *, from_end: bool) -> tuple[str, str]:
    parts = label.split(BETWEEN)
    n = min(n, len(parts) - 1)
    at = len(parts) - n if from_end else n
    return BETWEEN.join(parts[:at]), BETWEEN.join(parts[at:])


def _untidiness(pairs: Sequence[tuple[str, str]]) -> tuple[bool, int]:
    runs, metrics = len({run for run, _ in pairs}), len({metric for _, metric in pairs})
    return runs * metrics != len(set(pairs)), runs + metrics

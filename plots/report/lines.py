"""The verdict list of the terminal: a line for each run, one for healthy runs that are alike."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from afterrun.analyzer.analysis import Analysis
from afterrun.plots.report import format as fmt
from afterrun.plots.report.story import group, order_runs, run_cost, state, verdict


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the terminal's verdict list: one run, or several healthy ones that are alike."""

    label: str
    runs: tuple[str, ...]
    text: str
    wasted_gpu_s: float | None = None


def lines(analysis: Analysis) -> list[Line]:
    """A verdict line for every run, worst first; healthy runs whose names differ by a number share one."""
    by_run = group(analysis.findings)
    out: list[Line] = []
    alike: dict[tuple[str, str], list[str]] = {}
    for name in order_runs(analysis):
        view, findings = analysis.views[name], by_run.get(name, [])
        text = verdict(view, findings)
        if state(view, findings) == "healthy":
            alike.setdefault((re.sub(r"\d+", "#", name), text), []).append(name)
            continue
        out.append(Line(name, (name,), text, run_cost(findings)))
    for (_, text), names in alike.items():
        out.append(Line(_label(names), tuple(names), text + _spread(analysis, names)))
    return out


def _label(names: Sequence[str]) -> str:
    """``seed{1..5}`` for names that differ in one number only."""
    if len(names) == 1:
        return names[0]
    parts = [re.split(r"(\d+)", n) for n in names]
    holes = [i for i in range(1, len(parts[0]), 2) if len({p[i] for p in parts}) > 1]
    if len(holes) != 1:
        return f"{names[0]} … {names[-1]}"
    numbers = sorted((p[holes[0]] for p in parts), key=lambda t: (int(t), t))
    whole = [int(t) for t in numbers]
    dense = whole == list(range(whole[0], whole[-1] + 1))
    inner = f"{numbers[0]}..{numbers[-1]}" if dense and len(numbers) > 2 else ",".join(numbers[:6])
    inner += ",…" if not dense and len(numbers) > 6 else ""
    return "".join(f"{{{inner}}}" if i == holes[0] else t for i, t in enumerate(parts[0]))


def _spread(analysis: Analysis, names: Sequence[str]) -> str:
    """How many runs share the line, and mean and standard deviation of their last objective."""
    if len(names) < 2:
        return ""
    curves = [analysis.views[n].train_loss for n in names]
    last = [float(s.value[-1]) for s in curves if s is not None and s.finite[-1]]
    if len(last) < len(names):
        return f" ({len(names):,} runs)"
    mean, sd = float(np.mean(last)), float(np.std(last, ddof=1))
    metric = next(s.metric or s.tag for s in curves if s is not None)
    return f" ({len(names):,} runs, {metric} {fmt.number(mean)} ± {fmt.number(sd, 2)})"

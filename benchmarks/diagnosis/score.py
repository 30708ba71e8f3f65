"""How well findings match what was planted: precision, recall and onset error by code, false alarms on healthy runs.

A finding counts when it claims a problem (confirmed or possible, warning or critical). Of a run with a fault, a code that
was neither planted nor allowed as a second reading is a false positive; of a healthy run every code is, and the
run counts as falsely alarmed once. The onset error is the distance between the first step found and the one planted, as a
share of the run's steps.
"""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from benchmarks.diagnosis.runs import Run

from afterrun.analyzer.finding import Finding

Onsets = Mapping[str, int | None]
"""Code -> first step of its alarms, None where a finding names none."""


@dataclass
class Score:
    """Counts by code over any number of runs."""

    found: Counter[str] = field(default_factory=Counter)
    missed: Counter[str] = field(default_factory=Counter)
    wrong: Counter[str] = field(default_factory=Counter)
    late: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    healthy: int = 0
    alarmed: int = 0
    runs: int = 0
    slips: list[str] = field(default_factory=list)
    """One line for each run that was not read right."""

    def add(self, run: Run, alarms: Onsets, unseen: frozenset[str] = frozenset()) -> None:
        """Count one run. ``unseen``: codes that its format records nothing about."""
        self.runs += 1
        planted = {f.code: f.onset for f in run.faults}
        wrong = sorted(set(alarms) - set(planted) - run.allowed)
        missed = []
        for code, onset in planted.items():
            if code in unseen:
                continue
            told = next((c for c in (code, *_stand_ins(code)) if c in alarms), None)
            if told is None:
                missed.append(code)
                continue
            self.found[code] += 1
            at = alarms[told]
            if at is not None:
                self.late[code].append(abs(at - onset) / max(1, int(run.step.max())))
        self.missed.update(missed)
        self.wrong.update(wrong)
        if not planted:
            self.healthy += 1
            self.alarmed += bool(wrong)
        if wrong or missed:
            self.slips.append(f"{run.name}: missed {missed or '-'}, wrongly found {wrong or '-'}")

    def codes(self) -> list[str]:
        """All codes that occurred."""
        return sorted({*self.found, *self.missed, *self.wrong})

    def recall(self, code: str) -> float | None:
        """Share of planted faults that were found; None where none was planted."""
        total = self.found[code] + self.missed[code]
        return self.found[code] / total if total else None

    def precision(self, code: str) -> float | None:
        """Share of alarms that were right; None where there was none."""
        total = self.found[code] + self.wrong[code]
        return self.found[code] / total if total else None

    def onset_error(self, code: str) -> float | None:
        """Median onset error as a share of the run; None where no onset was told."""
        return statistics.median(self.late[code]) if self.late[code] else None

    @property
    def totals(self) -> tuple[float, float, float]:
        """Precision, recall and F1 over all codes."""
        right = sum(self.found.values())
        precision = right / max(1, right + sum(self.wrong.values()))
        recall = right / max(1, right + sum(self.missed.values()))
        return precision, recall, 2 * precision * recall / max(1e-9, precision + recall)


def _stand_ins(code: str) -> tuple[str, ...]:
    """A run that never learns is on a plateau from its first step."""
    return {"not-learning": ("plateau",), "plateau": ("not-learning",)}.get(code, ())


def alarms_of(findings: Iterable[Finding]) -> dict[str, int | None]:
    """The alarms of one run by code."""
    onsets: dict[str, int | None] = {}
    for finding in findings:
        if finding.is_alarm:
            at = finding.where.step_start
            before = onsets.get(finding.code)
            onsets[finding.code] = at if before is None else before if at is None else min(before, at)
    return onsets

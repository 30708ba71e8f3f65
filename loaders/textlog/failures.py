"""Marks of a text log: failures, checkpoints and ends, where training went on after a failure, tracebacks.

``resumed`` marks say where metric lines follow a failure again: at a higher step it had been caught, at a lower one
the run was started once more.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from afterrun.loaders.tables.cells import moment
from afterrun.loaders.textlog.privacy import discreet
from afterrun.loaders.textlog.signatures import Signature, is_failure, signature_of
from afterrun.loaders.textlog.tokens import Ints, Lines
from afterrun.loaders.textlog.tracebacks import Traceback, Tracebacks

MAX_TEXT = 400
FIRST_MARKS = 200
LAST_MARKS = 50
"""Marks kept of one kind from the beginning and the end of a file; those between are counted in a note."""

MAX_LOOKED_AT = 200
"""Lines of one skeleton that are held against the signatures, from each end of a block."""

RESUMED_LINES = 3
"""Metric lines after a failure from which training went on; ranks that had not noticed yet write a line or two."""

_CODE = re.compile(
    r"\s*(?:#|//|[fbr]{0,2}[\"']|(?:def|if|elif|for|while|return|raise|except|import|assert|class)\b|[\w.]+\(|[\w.\[\]'\"]+ [-+*/]?= )"
    r"|\s{4,}\S.*[)\]:,\\]$"
)
_STEP = re.compile(
    r"\b(?:iteration|iter|step|global_step|update)s?[ =:_]*(\d{1,15})\b|checkpoint[-_](\d{1,15})\b"
)
_SPEAKER = re.compile(r"(?:slurmstepd|slurm_load|srun|mpirun|torchrun|NVRM): ")
_SLURM_TIME = re.compile(r"CANCELLED AT (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)")


@dataclass(frozen=True, slots=True)
class Mark:
    """One row of ``marks``; ``line`` is that of the file."""

    line: int
    kind: str
    text: str
    step: int | None = None
    t_ns: int | None = None


def one_line(text: str) -> str:
    """Text of a mark: one line, no home folder, no secret, at most ``MAX_TEXT`` signs."""
    plain = discreet(" ".join(text.split()))
    return plain if len(plain) <= MAX_TEXT else plain[: MAX_TEXT - 3] + "..."


@dataclass(frozen=True, slots=True)
class Progress:
    """The metric lines of a block, in order: index of the line, step (NaN: none) and the step known at any line."""

    lines: Ints
    steps: NDArray[np.float64]

    def step_at(self, line: int, before: float) -> float:
        """The last step recorded up to a line; ``before``: that of the blocks before."""
        known = self.steps[: int(np.searchsorted(self.lines, line, side="right"))]
        known = known[np.isfinite(known)]
        return float(known[-1]) if len(known) else before


class MarkFinder:
    """Finds the marks of one file, block by block, in order."""

    def __init__(self) -> None:
        self._tracebacks = Tracebacks()
        self._counts: Counter[str] = Counter()
        self._late: dict[str, deque[Mark]] = {}
        self._step = float("nan")
        self._failed: Mark | None = None
        self._since: list[tuple[int, float]] = []

    def find(
        self,
        lines: Lines,
        suspicious: Sequence[Ints],
        tracebacks: Ints,
        notices: Sequence[Mark],
        progress: Progress,
    ) -> list[Mark]:
        """Marks of a block. ``suspicious``: lines of each skeleton that may match; ``tracebacks``: first lines
        of tracebacks; ``notices``: marks that grammars saw, with the index of the line in place of its number.
        """
        found: dict[int, Mark] = {}
        for traceback in self._follow(lines, tracebacks):
            found[traceback.line] = self._of_traceback(traceback)
        for of_one in suspicious:
            ends = np.unique(np.concatenate([of_one[:MAX_LOOKED_AT], of_one[-MAX_LOOKED_AT:]]))
            for i in ends.tolist():
                mark = self._of_line(lines, i)
                if mark is not None:
                    found.setdefault(i, mark)
        for mark in notices:
            found.setdefault(mark.line, mark)
        marks = [self._placed(lines, i, found[i], progress) for i in sorted(found)]
        marks = [*self._with_resumed(marks, lines, progress)]
        self._step = progress.step_at(len(lines.numbers), self._step)
        return [m for m in marks if self._kept(m)]

    def end(self) -> list[Mark]:
        """Marks of what was open when the file ended, and the last ones of kinds with many."""
        whole = int(self._step) if np.isfinite(self._step) else None
        marks = [replace(self._of_traceback(t), step=whole) for t in self._tracebacks.end()]
        late = [m for m in marks if self._kept(m)] + [m for kept in self._late.values() for m in kept]
        return sorted(late, key=lambda m: m.line)

    def notes(self) -> Iterator[str]:
        """One sentence for each kind of which not all marks are kept."""
        for kind, count in self._counts.items():
            if count > FIRST_MARKS + LAST_MARKS:
                yield f"{count:,} marks of {kind}: the first {FIRST_MARKS} and the last {LAST_MARKS} are kept"

    def _follow(self, lines: Lines, starts: Ints) -> Iterator[Traceback]:
        """Tracebacks that end in this block; ``line`` is the index of the line."""
        at, waiting = 0, starts.tolist()
        while waiting or self._tracebacks.busy:
            if not self._tracebacks.busy:
                at = max(at, waiting[0])
            if at >= len(lines.numbers):
                return
            waiting = waiting[1:] if waiting and waiting[0] <= at else waiting
            for done in self._tracebacks.feed(int(lines.numbers[at]), lines.text(at)):
                yield Traceback(at, done.started, done.exception, done.frame, done.own)
            at += 1

    def _of_traceback(self, traceback: Traceback) -> Mark:
        known = signature_of(one_line(traceback.exception))
        kind = known.kind if known is not None and known.role in ("root", "cascade") else "traceback"
        return Mark(traceback.line, kind, one_line(traceback.text()))

    def _of_line(self, lines: Lines, i: int) -> Mark | None:
        text = lines.text(i)
        if len(text) > 10 * MAX_TEXT:
            text = text[-10 * MAX_TEXT :]
        known: Signature | None = None if _CODE.match(text) else signature_of(text)
        if known is None:
            return None
        stamp = _SLURM_TIME.search(text)
        speaker = _SPEAKER.search(text)
        text = text[speaker.start() :] if speaker else text
        return Mark(i, known.kind, one_line(text), t_ns=moment(stamp[1]) if stamp else None)

    def _placed(self, lines: Lines, i: int, mark: Mark, progress: Progress) -> Mark:
        """The mark with the number of its line and the step it tells or the last one before it."""
        step = progress.step_at(i, self._step) if mark.step is None else float(mark.step)
        told = _STEP.search(mark.text) if mark.kind == "checkpoint" else None
        whole = int(told[1] or told[2]) if told else int(step) if np.isfinite(step) else None
        return Mark(int(lines.numbers[i]), mark.kind, mark.text, whole, mark.t_ns)

    def _with_resumed(self, marks: list[Mark], lines: Lines, progress: Progress) -> Iterator[Mark]:
        """The marks, and one where training goes on after the failures before it."""
        numbers = lines.numbers[progress.lines]
        at = 0
        for mark in [*marks, None]:
            end = len(numbers) if mark is None else int(np.searchsorted(numbers, mark.line))
            if self._failed is not None:
                yield from self._watch(numbers[at:end], progress.steps[at:end])
            at = max(at, end)
            if mark is not None:
                if is_failure(mark.kind, mark.text):
                    self._failed, self._since = mark, []
                yield mark

    def _watch(self, numbers: Ints, steps: NDArray[np.float64]) -> Iterator[Mark]:
        need = RESUMED_LINES - len(self._since)
        self._since += list(zip(numbers[:need].tolist(), steps[:need].tolist(), strict=True))
        if len(self._since) < RESUMED_LINES:
            return
        line, step = self._since[0]
        whole = int(step) if np.isfinite(step) else None
        self._failed, self._since = None, []
        yield Mark(line, "resumed", "training lines follow again", whole)

    def _kept(self, mark: Mark) -> bool:
        self._counts[mark.kind] += 1
        if self._counts[mark.kind] <= FIRST_MARKS:
            return True
        self._late.setdefault(mark.kind, deque(maxlen=LAST_MARKS)).append(mark)
        return False

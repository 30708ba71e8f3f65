"""Labelled synthetic trainings, read by ``afterrun`` as files, and how well it tells what is wrong with them.

    python -m benchmarks.diagnosis                     # 3 runs of each kind, as trainer states
    python -m benchmarks.diagnosis --per-kind 20 --seed 1000 --formats hf,csv,jsonl,tb --slips
    python -m benchmarks.diagnosis --kinds overfit,double_descent --keep logs/
    python -m benchmarks.diagnosis --page              # the tables of docs/diagnosis.md anew

Healthy kinds are in ``healthy.py``, faults in ``faults.py``; ``score.py`` says what counts. ``docs/diagnosis.md`` holds the
table of a fixed set, which a test keeps true.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from benchmarks.diagnosis import faults, healthy
from benchmarks.diagnosis.logs import UNSEEN, WRITERS
from benchmarks.diagnosis.runs import KINDS, Run, make
from benchmarks.diagnosis.score import Score, alarms_of

from afterrun.api import analyze

assert faults, healthy  # imported for the kinds they register


def make_all(kinds: Iterable[str], per_kind: int, seed: int) -> Iterator[Run]:
    """``per_kind`` runs of each kind, of the seeds from ``seed`` on."""
    for name in kinds:
        for i in range(per_kind):
            yield make(name, seed + i)


def scored(runs: Sequence[Run], fmt: str, folder: Path) -> Score:
    """Write the runs in one format, read and judge them, and count."""
    folder.mkdir(parents=True)
    for run in runs:
        WRITERS[fmt](run, folder)
    analysis = analyze(folder).analysis
    by_name = {name.rpartition("/")[2]: analysis.of_run(name) for name in analysis.views}
    score = Score()
    for run in runs:
        score.add(run, alarms_of(by_name[run.name]), UNSEEN[fmt])
    return score


def table(score: Score) -> str:
    """The score by code as a Markdown table."""
    lines = ["| code | planted | recall | precision | onset error |", "|---|---:|---:|---:|---:|"]
    for code in score.codes():
        planted = score.found[code] + score.missed[code]
        cells = (_pct(score.recall(code)), _pct(score.precision(code)), _pct(score.onset_error(code), 1))
        lines.append(f"| `{code}` | {planted} | {' | '.join(cells)} |")
    return "\n".join(lines)


def summary(score: Score) -> str:
    """One line over all codes."""
    precision, recall, f1 = score.totals
    return (
        f"precision {precision:.3f}, recall {recall:.3f}, F1 {f1:.3f}; "
        f"{score.alarmed} of {score.healthy} healthy runs falsely alarmed"
    )


LONG = frozenset({"long_run", "long_overfit", "long_spikes"})
"""Kinds that take a second each; not on the page."""

PAGE = Path(__file__).parents[2] / "docs" / "diagnosis.md"
PAGE_FORMATS, PAGE_PER_KIND, PAGE_SEED = ("csv", "hf"), 4, 0
_BEGIN, _END = "<!-- tables -->\n", "<!-- /tables -->\n"


def page_tables() -> str:
    """The tables of ``docs/diagnosis.md``: the same runs in each of its formats."""
    runs = list(make_all([k for k in KINDS if k not in LONG], PAGE_PER_KIND, PAGE_SEED))
    parts = []
    with tempfile.TemporaryDirectory() as scratch:
        for fmt in PAGE_FORMATS:
            score = scored(runs, fmt, Path(scratch) / fmt)
            parts.append(f"**`{fmt}`**, {score.runs} runs: {summary(score)}\n\n{table(score)}\n")
    return "\n".join(parts)


def page_with(tables: str) -> str:
    """The page with its tables replaced."""
    text = PAGE.read_text("utf-8")
    head, rest = text.split(_BEGIN)
    return f"{head}{_BEGIN}\n{tables}\n{_END}{rest.split(_END)[1]}"


def _pct(share: float | None, digits: int = 0) -> str:
    return "" if share is None else f"{100 * share:.{digits}f} %"


def main() -> None:
    """See the module."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--per-kind", type=int, default=3)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--kinds", default=",".join(KINDS))
    options.add_argument("--formats", default="hf")
    options.add_argument("--slips", action="store_true", help="name every run that was not read right")
    options.add_argument("--keep", type=Path, help="write the logs into this folder and leave them there")
    options.add_argument("--page", action="store_true", help="write the tables of docs/diagnosis.md anew")
    flags = options.parse_args()
    if flags.page:
        PAGE.write_text(page_with(page_tables()), "utf-8")
        return
    runs = list(make_all(flags.kinds.split(","), flags.per_kind, flags.seed))
    with tempfile.TemporaryDirectory() as scratch:
        for fmt in flags.formats.split(","):
            started = time.monotonic()
            score = scored(runs, fmt, (flags.keep or Path(scratch)) / fmt)
            print(f"{fmt}: {score.runs} runs in {time.monotonic() - started:.1f} s\n{table(score)}")
            print("\n".join(score.slips) if flags.slips else "", f"{summary(score)}\n", sep="\n")


if __name__ == "__main__":
    main()

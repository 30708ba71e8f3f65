"""What must not change a verdict: units, clocks, doubled points, half of the points, parts of a run, the format of a log.

Each test writes the same labelled trainings twice, once changed, and compares which alarms are raised. The runs are those of
``benchmarks/diagnosis``: no verdict is compared with a label here, only with itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
from benchmarks.diagnosis import faults, healthy
from benchmarks.diagnosis.logs import UNSEEN, WRITERS, write_tb
from benchmarks.diagnosis.runs import TRAIN, VAL, Run, make

from afterrun.api import analyze
from tests.support import events

KINDS = (
    "plain", "staircase", "double_descent", "correlated_noise", "overfit", "not_a_number", "diverges", "spikes", "level_shifts",
    "oscillates", "schedule_too_short", "rate_jumps", "no_warmup", "gradients_explode", "loss_of_nothing", "waits_for_data",
)  # fmt: skip
SEEDS = (11, 12)
Alarms = Mapping[str, frozenset[str]]

assert all(name in {**vars(faults), **vars(healthy)} for name in KINDS)


@pytest.fixture(scope="module")
def runs() -> list[Run]:
    return [make(kind, seed) for kind in KINDS for seed in SEEDS]


@pytest.fixture(scope="module")
def usual(runs: list[Run], tmp_path_factory: pytest.TempPathFactory) -> Alarms:
    return alarms(runs, tmp_path_factory.mktemp("usual"))


def alarms(runs: list[Run], folder: Path, fmt: str = "csv") -> Alarms:
    """Codes of the alarms of each run."""
    folder.mkdir(exist_ok=True)
    for run in runs:
        WRITERS[fmt](run, folder)
    return read(folder)


def read(folder: Path) -> Alarms:
    analysis = analyze(folder).analysis
    return {
        name.rpartition("/")[2]: frozenset(f.code for f in analysis.of_run(name) if f.is_alarm)
        for name in analysis.views
    }


def changed(runs: list[Run], change: Callable[[Run], None]) -> list[Run]:
    copies = deepcopy(runs)
    for run in copies:
        change(run)
    return copies


def rows(run: Run, order: np.ndarray) -> None:
    """The run with these of its rows."""
    run.step = run.step[order]
    run.curves = {tag: values[order] for tag, values in run.curves.items()}
    run.logged = {tag: at[order] for tag, at in run.logged.items()}


@pytest.mark.parametrize("factor", [1e-3, 1e4])
def test_the_unit_of_the_loss(runs: list[Run], usual: Alarms, tmp_path: Path, factor: float) -> None:
    def scaled(run: Run) -> None:
        for tag in (TRAIN, VAL):
            run.curves[tag] = run.curves[tag] * factor

    assert alarms(changed(runs, scaled), tmp_path / "x") == usual


def test_the_unit_of_the_step(runs: list[Run], usual: Alarms, tmp_path: Path) -> None:
    def longer(run: Run) -> None:
        run.step = run.step * 7

    assert alarms(changed(runs, longer), tmp_path / "x") == usual


def test_points_written_twice(runs: list[Run], usual: Alarms, tmp_path: Path) -> None:
    twice = changed(runs, lambda run: rows(run, np.repeat(np.arange(run.rows), 2)))
    assert alarms(twice, tmp_path / "x") == usual


def test_every_other_point(runs: list[Run], usual: Alarms, tmp_path: Path) -> None:
    """Evaluations are kept. A spike may be gone with its point; no alarm comes in, and no other one goes."""

    def halved(run: Run) -> None:
        kept = np.arange(run.rows) % 2 == 0
        rows(run, np.flatnonzero(kept | run.at(VAL)))

    found = alarms(changed(runs, halved), tmp_path / "x")
    for name, codes in usual.items():
        fleeting = {"spike", "grad-exploding", "oscillation"}
        assert codes - fleeting <= found[name], name
        assert found[name] <= codes, name


@pytest.mark.parametrize("fmt", ["jsonl", "hf", "tb"])
def test_the_format_of_the_log(runs: list[Run], usual: Alarms, tmp_path: Path, fmt: str) -> None:
    found = alarms(runs, tmp_path / "x", fmt)
    assert found == {name: codes - UNSEEN[fmt] for name, codes in usual.items()}


def test_the_clock(runs: list[Run], tmp_path: Path) -> None:
    """Event files of another year."""
    once, later = tmp_path / "once", tmp_path / "later"
    for folder in (once, later):
        folder.mkdir()
    for run in runs:
        write_tb(run, once)
    for path in sorted(once.rglob("*tfevents*")):
        run = next(r for r in runs if r.name == path.parent.name)
        target = later / run.name / path.name
        target.parent.mkdir()
        write_parts(run, target.parent, [np.arange(run.rows)], shift_s=3e7)
    assert read(later) == read(once)


def test_parts_of_a_resumed_run(runs: list[Run], tmp_path: Path) -> None:
    """Three event files that go on from one another, the later ones written first."""
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    for folder in (whole, parts):
        folder.mkdir()
    for run in runs:
        write_tb(run, whole)
        (parts / run.name).mkdir()
        thirds = np.array_split(np.arange(run.rows), 3)
        write_parts(run, parts / run.name, thirds)
    assert read(parts) == read(whole)


def write_parts(run: Run, folder: Path, parts: list[np.ndarray], shift_s: float = 0.0) -> None:
    """Rows of a run as one event file a part; the last part is written first."""
    for number, order in reversed(list(enumerate(parts))):
        path = folder / f"events.out.tfevents.{1700000000 + number}.node1.{7 + number}.0"
        with path.open("wb") as file:
            file.write(events.record(events.version()))
            for i in order.tolist():
                row = {tag: float(values[i]) for tag, values in run.curves.items() if run.at(tag)[i]}
                wall_s = float(run.wall_s[i]) + shift_s
                file.write(events.record(events.scalars(wall_s, int(run.step[i]), **row)))

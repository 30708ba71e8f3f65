"""Files that hold several runs become several runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import polars as pl
import pytest

from afterrun.loaders.collect import collect
from afterrun.loaders.discover import Found
from afterrun.loaders.errors import UnreadableError
from afterrun.loaders.reading import by_run, read
from afterrun.loaders.registry import Loader, Source
from afterrun.loaders.runs.member import Group, Member
from afterrun.loaders.schema import Batch
from tests.support.loading import write


def rows(*values: float, tag: str = "loss") -> dict[str, pl.DataFrame]:
    return {"metrics": pl.DataFrame({"tag": [tag] * len(values), "value": list(values)})}


class Fake(Loader):
    """Yields what it is told to, then fails if it is told to."""

    format = "fake"
    family = "curves"

    def __init__(self, batches: Sequence[Batch], error: Exception | None = None) -> None:
        self._batches, self._error = batches, error

    def sniff(self, path: Path, head: bytes) -> bool:
        return True

    def load(self, source: Source) -> Iterator[Batch]:
        yield from self._batches
        if self._error:
            raise self._error


def member(*batches: Batch, error: Exception | None = None, name: str = "exp/all.csv") -> Member:
    source = Source(path=Path(name), name=name, size_bytes=10)
    return Member(found=Found(source=source, loader=Fake(batches, error)))


def test_rows_go_to_their_sub_run_in_order_of_appearance() -> None:
    a, b = read(
        member(
            Batch(frames=rows(1.0), subrun="b"),
            Batch(frames=rows(2.0), subrun="a", damaged=2, notes=("two bad",)),
            Batch(frames=rows(3.0), subrun="b"),
        )
    )
    assert (a.subrun, a.table("metrics")["value"].to_list(), a.status, a.damaged) == (
        "b",
        [1.0, 3.0],
        "read",
        0,
    )
    assert (b.subrun, b.status, b.damaged, b.notes) == ("a", "partial", 2, ("two bad",))


def test_what_concerns_the_file_is_told_with_each_and_counted_once() -> None:
    a, b = read(
        member(
            Batch(frames=rows(1.0), subrun="a"),
            Batch(frames=rows(2.0), subrun="b"),
            Batch(damaged=3, notes=("the end is missing",), sampled=True),
        )
    )
    assert (a.damaged, b.damaged) == (3, 0)
    assert a.notes == b.notes == ("the end is missing",)
    assert a.sampled
    assert b.sampled


def test_a_failure_after_some_runs_keeps_them() -> None:
    a, b = read(
        member(
            Batch(frames=rows(1.0), subrun="a"),
            Batch(frames=rows(2.0), subrun="b"),
            error=UnreadableError("page 7 is gone"),
        )
    )
    assert [(x.status, x.notes) for x in (a, b)] == [("partial", ("page 7 is gone",))] * 2
    (alone,) = read(member(error=UnreadableError("not a database")))
    assert (alone.subrun, alone.status) == (None, "unreadable")


def test_rows_without_a_sub_run_stay_with_the_file() -> None:
    whole, a = read(member(Batch(frames=rows(1.0)), Batch(frames=rows(2.0), subrun="a"), Batch(damaged=1)))
    assert (whole.subrun, whole.damaged, a.subrun, a.damaged) == (None, 1, "a", 0)


@pytest.mark.parametrize(("given", "called"), [(" /a/b/ ", "a/b"), ("", "unnamed"), ("//", "unnamed")])
def test_names_are_trimmed(given: str, called: str) -> None:
    (one,) = read(member(Batch(frames=rows(1.0), subrun=given)))
    assert one.subrun == called


def test_files_that_name_the_same_sub_run_are_one_run() -> None:
    loss = member(
        Batch(frames=rows(1.0), subrun="a"), Batch(frames=rows(2.0), subrun="b"), name="exp/loss.csv"
    )
    acc = member(Batch(frames=rows(0.5, tag="acc"), subrun="a"), name="exp/acc.csv")
    group = Group(run="exp", members=(acc, loss), grouped_by="one folder")
    found = {
        g.run: (g.members, [x.name for x in files]) for g, files in by_run(group, [*read(acc), *read(loss)])
    }
    assert found == {
        "exp/a": ((acc, loss), ["exp/acc.csv", "exp/loss.csv"]),
        "exp/b": ((loss,), ["exp/loss.csv"]),
    }


def test_without_sub_runs_the_group_is_as_it_was() -> None:
    one = member(Batch(frames=rows(1.0)))
    group = Group(run="exp", members=(one,), grouped_by="one file")
    assert [g for g, _ in by_run(group, read(one))] == [group]


def test_names_of_sub_runs_and_folders_stay_apart(tmp_path: Path) -> None:
    """A sub-run that is called like a folder of runs gets a name of its own."""
    curve = "Wall time,Step,Value\n1700000000.0,0,2.0\n1700000001.0,1,1.0\n"
    write(tmp_path, curve, "dl/run-a-tag-loss.csv")
    write(tmp_path, "epoch,loss\n0,1.0\n1,0.5\n", "dl/a/log.csv")
    collection = collect([tmp_path])
    names = collection.tables.run_names()
    assert len(set(names)) == len(names) == 2
    assert "dl/a" in names
    points = collection.tables.metrics.filter(pl.col("tag") == "loss").group_by("run").len()
    assert points["len"].to_list() == [2, 2]

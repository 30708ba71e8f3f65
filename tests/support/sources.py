"""Files as they are after reading, made from a few rows: what ``assemble`` gets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import polars as pl

from afterrun.loaders.discover import Found
from afterrun.loaders.registry import Loader, Source
from afterrun.loaders.runs.member import Member
from afterrun.loaders.runs.placing import Loaded
from afterrun.loaders.schema import Batch, conform

Rows = Sequence[tuple[str, int | None, float]]


class Made(Loader):
    """A loader of any format that is never asked to read."""

    family = "curves"

    def __init__(self, format_: str, *, snapshot: bool = False) -> None:
        self.format = format_  # type: ignore[misc]  # class data of real loaders
        self.snapshot = snapshot  # type: ignore[misc]

    def sniff(self, path: Path, head: bytes) -> bool:
        return True

    def load(self, source: Source) -> Iterator[Batch]:
        return iter(())


def source_file(
    kind: str,
    rows: Rows,
    *,
    epochs: Sequence[float] | None = None,
    wall_s: Sequence[float] | None = None,
    name: str = "",
    rank: int | None = None,
    job: str | None = None,
    damaged: int = 0,
) -> Loaded:
    """One file of the format ``kind`` with rows (tag, step, value), in write order."""
    frame = pl.DataFrame(
        {
            "tag": [tag for tag, _, _ in rows],
            "step": [step for _, step, _ in rows],
            "value": [value for _, _, value in rows],
            "epoch": epochs or [None] * len(rows),
            "wall_ns": [None if wall_s is None else round(wall_s[i] * 1e9) for i in range(len(rows))],
        },
        schema={
            "tag": pl.String,
            "step": pl.Int64,
            "value": pl.Float64,
            "epoch": pl.Float64,
            "wall_ns": pl.Int64,
        },
    )
    source = Source(path=Path(name or kind), name=name or f"run/{kind}", size_bytes=1)
    loader = Made(kind, snapshot=kind == "hf-trainer")
    member = Member(found=Found(source=source, loader=loader), rank=rank, job=job)
    frames = {"metrics": conform("metrics", frame)} if rows else {}
    return Loaded(member=member, frames=frames, damaged=damaged, status="read" if rows else "empty")

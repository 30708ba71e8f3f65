"""One loader, one file, everything it said: so that a test reads as input and outcome."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from afterrun.loaders.registry import HEAD_BYTES, Loader, Source, claim
from afterrun.loaders.schema import LOADER_COLUMNS, conform

ROOT = Path(__file__).parents[2]
CORPUS = Path(os.environ.get("AFTERRUN_CORPUS", ROOT.parent / "shared" / "corpus"))

needs_corpus = pytest.mark.skipif(not (CORPUS / "manifest.jsonl").is_file(), reason="the corpus is not here")


@dataclass(frozen=True)
class Read:
    """All batches of one file put together; ``params`` decoded from their JSON."""

    metrics: pl.DataFrame
    marks: pl.DataFrame
    params: dict[str, Any]
    damaged: int
    notes: tuple[str, ...]
    status: str | None

    def values(self, tag: str) -> list[float]:
        """Values of one tag in write order."""
        return self._of(tag)["value"].to_list()

    def steps(self, tag: str) -> list[int | None]:
        """Steps of one tag in write order."""
        return self._of(tag)["step"].to_list()

    def points(self, tag: str) -> list[tuple[int | None, float]]:
        """(step, value) of one tag in write order."""
        return list(zip(self.steps(tag), self.values(tag), strict=True))

    def tags(self) -> list[str]:
        """Tags in order of their first row."""
        return self.metrics["tag"].unique(maintain_order=True).to_list()

    def _of(self, tag: str) -> pl.DataFrame:
        return self.metrics.filter(pl.col("tag") == tag).sort("seq")


def source(path: Path) -> Source:
    """A file as the walk hands it to a loader."""
    return Source(path=path, name=path.name, size_bytes=path.stat().st_size)


def read(loader: Loader, path: Path) -> Read:
    """Load one file; every frame is held against the schema."""
    batches = list(loader.load(source(path)))
    tables = {}
    for name in ("metrics", "marks", "params"):
        frames = [conform(name, b.frames[name]) for b in batches if name in b.frames]
        tables[name] = pl.concat(frames) if frames else pl.DataFrame(schema=LOADER_COLUMNS[name])
    return Read(
        metrics=tables["metrics"].with_columns(pl.col("tag").cast(pl.String)),
        marks=tables["marks"],
        params={str(k): json.loads(v) for k, v in tables["params"].select("key", "value").iter_rows()},
        damaged=sum(b.damaged for b in batches),
        notes=tuple(n for b in batches for n in b.notes),
        status=next((b.status for b in batches if b.status), None),
    )


def write(folder: Path, text: str | bytes, name: str = "log.csv") -> Path:
    """A file of exactly this text (UTF-8, line ends as given) or these bytes."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def claimed(path: Path) -> str | None:
    """Name of the format that takes this file."""
    with path.open("rb") as file:
        loader = claim(path, file.read(HEAD_BYTES))
    return None if loader is None else loader.format


def load_claimed(path: Path) -> tuple[str, Read]:
    """The format that takes the file, and what its loader read."""
    with path.open("rb") as file:
        loader = claim(path, file.read(HEAD_BYTES))
    assert loader is not None, f"no loader takes {path.name}"
    return loader.format, read(loader, path)


def corpus_records(*formats: str) -> Iterator[dict[str, Any]]:
    """Records of the corpus of these formats; none where the corpus is not here."""
    manifest = CORPUS / "manifest.jsonl"
    if manifest.is_file():
        for line in manifest.read_text().splitlines():
            record = json.loads(line)
            if record["format"] in formats:
                yield record

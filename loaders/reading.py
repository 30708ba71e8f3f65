"""One file through its loader, inside a fault wall: whatever it does costs this file only.

A file that holds several runs comes back as one ``Loaded`` a sub-run (docs/decisions/0006-sub-runs.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import polars as pl

from afterrun.loaders.errors import AfterrunError, SchemaError
from afterrun.loaders.runs.charts import CHARTS, not_joined
from afterrun.loaders.runs.member import Group, Member
from afterrun.loaders.runs.placing import Loaded
from afterrun.loaders.schema import Batch, Status, conform
from afterrun.loaders.wanted import Wanted


@dataclass(slots=True)
class _Part:
    """What came so far for one sub-run, or for the file as a whole."""

    frames: dict[str, list[pl.DataFrame]] = field(default_factory=dict)
    damaged: int = 0
    notes: list[str] = field(default_factory=list)
    status: Status | None = None
    sampled: bool = False

    def add(self, batch: Batch, wanted: Wanted | None) -> None:
        for name, given in batch.frames.items():
            frame = given if batch.assembled else conform(name, given)
            self.frames.setdefault(name, []).append(wanted.read_rows(name, frame) if wanted else frame)
        self.damaged += batch.damaged
        self.notes += batch.notes
        self.sampled = self.sampled or batch.sampled
        self.status = batch.status or self.status

    def loaded(self, member: Member, subrun: str | None, *, assembled: bool) -> Loaded:
        frames = {name: pl.concat(frames) for name, frames in self.frames.items()}
        # rows that nobody asked for may have been passed over
        held = member.found.source.wanted is not None or any(map(len, frames.values()))
        told: Status = (
            "partial"
            if self.damaged and held
            else "unreadable"
            if self.damaged
            else "read"
            if held
            else "empty"
        )
        return Loaded(
            member=member,
            frames=frames,
            damaged=self.damaged,
            notes=tuple(dict.fromkeys(self.notes)),
            status=self.status or told,
            sampled=self.sampled,
            subrun=subrun,
            assembled=assembled,
        )


def read(member: Member) -> list[Loaded]:
    """The file, or each of its sub-runs in order of appearance; never empty.

    Raises ``SchemaError`` only, which is a bug of the loader; every other failure is a status and a note.
    """
    loader, source = member.found.loader, member.found.source
    assert loader is not None
    if source.wanted is not None:
        source = replace(source, wanted=source.wanted.under(member.prefix))
    whole = _Part()
    parts: dict[str | None, _Part] = {None: whole}
    assembled = False
    try:
        for batch in loader.load(source):
            parts.setdefault(_clean(batch.subrun), _Part()).add(batch, source.wanted)
            assembled = assembled or batch.assembled
    except SchemaError:
        raise
    except (AfterrunError, OSError, MemoryError) as error:
        whole.notes.append(_reason(error))
        whole.status = _broken_off(parts)
    except Exception as error:  # noqa: BLE001  # the fault wall around one file
        whole.notes.append(
            f"{loader.format} reader failed ({type(error).__name__}: {error}); please report this file"
        )
        whole.status = _broken_off(parts)
    if len(parts) > 1 and not whole.frames:
        _spread(parts.pop(None), list(parts.values()))
    return [part.loaded(member, name, assembled=assembled) for name, part in parts.items()]


def _clean(subrun: str | None) -> str | None:
    return None if subrun is None else subrun.strip().strip("/") or "unnamed"


def _broken_off(parts: dict[str | None, _Part]) -> Status:
    return "partial" if any(part.frames for part in parts.values()) else "unreadable"


def _spread(whole: _Part, parts: list[_Part]) -> None:
    """What concerns the file is told with each of its runs; its losses count once, with the first."""
    parts[0].damaged += whole.damaged
    for part in parts:
        part.notes += whole.notes
        part.sampled = part.sampled or whole.sampled
        part.status = whole.status or part.status


def by_run(group: Group, files: list[Loaded]) -> Iterator[tuple[Group, list[Loaded]]]:
    """The files of a group as they are or, where they hold sub-runs, one group a sub-run.

    A sub-run is called ``<run>/<sub-run>``; below the root itself its own name will do. Files that name the
    same sub-run belong to it together, except for charts that may mean another run by that name.
    """
    apart = not_joined(files)
    runs: dict[tuple[str | None, str], list[Loaded]] = {}
    for loaded in files:
        chart = loaded.member.stem if loaded.subrun in apart and loaded.member.format in CHARTS else ""
        runs.setdefault((loaded.subrun, chart), []).append(loaded)
    for (subrun, chart), mine in runs.items():
        if subrun is None:
            yield group, mine
            continue
        name = "/".join(part for part in (group.run, chart, subrun) if part)
        members = tuple(dict.fromkeys(loaded.member for loaded in mine))
        yield replace(group, run=name, members=members, grouped_by="named inside the file"), mine


def _reason(error: Exception) -> str:
    if isinstance(error, OSError):
        return f"cannot be read: {error.strerror or error}"
    if isinstance(error, MemoryError):
        return "cannot be read: not enough memory"
    return str(error)

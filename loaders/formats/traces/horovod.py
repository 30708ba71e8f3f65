"""Horovod timelines: phases of collectives by tensor, an array that the writer never closes.

Times are microseconds of a steady clock; newer versions say in their first record when it started. Only the
beginning of a phase (``B``) has a name; phases of one tensor nest.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import polars as pl
from msgspec import Raw

from afterrun.loaders.errors import UnreadableError
from afterrun.loaders.registry import Loader, Source
from afterrun.loaders.schema import Batch
from afterrun.loaders.traces.arguments import decoded, whole_numbers
from afterrun.loaders.traces.chromejson import PIECE_BYTES, EventText
from afterrun.loaders.traces.events import Event, EventDecoder, collector_paused
from afterrun.loaders.traces.inflating import Blocks, opening
from afterrun.loaders.traces.microseconds import to_ns
from afterrun.loaders.traces.repair import NEGATIVE, without_negative

READY = "RANK_READY {}"
"""Name of the point in time at which a rank was ready for a collective; the last one is who the others waited for."""

_PHASE = re.compile(rb'"(?:NEGOTIATE_\w+|CYCLE_START|MPI_\w+|NCCL_\w+)"|Horovod')
_START = b'"start_time_since_epoch_in_micros"'
_MAX_TENSORS = 10_000


class _MetaArgs(msgspec.Struct, gc=False):
    name: str | None = None
    started_us: int | None = msgspec.field(default=None, name="start_time_since_epoch_in_micros")


class Horovod(Loader):
    """Horovod timelines (`HOROVOD_TIMELINE`): negotiation and execution of collectives, and when each rank was ready."""

    format = "horovod"
    family = "traces"

    def sniff(self, path: Path, head: bytes) -> bool:
        """An array of events with names of Horovod's phases; or an opening bracket alone in a file called timeline."""
        text = opening(head).lstrip()
        if not text.startswith(b"["):
            return False
        called = "timeline" in path.name.lower() or "horovod" in path.name.lower()
        if text.rstrip() == b"[":
            return called
        return b'"ph"' in text and bool(_PHASE.search(text) or (called and _START in text))

    def load(self, source: Source) -> Iterator[Batch]:
        """Read the events in one pass. Raises ``UnreadableError`` where the file holds none."""
        blocks = Blocks(source, PIECE_BYTES)
        text, decoder, timeline = EventText(blocks), EventDecoder(), _Timeline()
        with collector_paused():
            for piece in text.pieces():
                timeline.add(decoder.decode(piece))
        notes = [blocks.trouble] if blocks.trouble else []
        spoilt = decoder.damaged + text.lost
        if spoilt:
            notes.append(f"{spoilt} stretches hold no whole event and were left out")
        spans = timeline.spans()
        damaged = spoilt + timeline.damaged
        if spans is None and damaged:
            raise UnreadableError("; ".join([*notes, *timeline.notes()]))
        if spans is None:
            yield Batch(
                status="empty", notes=(*notes, "an empty timeline: opened, and no collective was written")
            )
            return
        yield Batch(
            frames={"spans": spans, "params": timeline.params()},
            damaged=damaged,
            notes=(*notes, *timeline.notes()),
            status="partial" if blocks.trouble else None,
        )


@dataclass(slots=True)
class _Timeline:
    """Phases that are open, and those that ended."""

    tensors: dict[int, str] = field(default_factory=dict)
    started_us: int = 0
    _open: dict[object, list[Event]] = field(default_factory=dict)
    _frames: list[pl.DataFrame] = field(default_factory=list)
    _cycles: int = 0
    _unopened: int = 0
    _timeless: int = 0
    _negative: int = 0

    def add(self, events: Sequence[Event]) -> None:
        """Take over one block of events, in file order."""
        begun: list[Event] = []
        ends: list[Raw] = []
        points: list[Event] = []
        for event in events:
            if event.ph == "B":
                self._open.setdefault(event.pid, []).append(event)
            elif event.ph == "E":
                if opened := self._open.get(event.pid):
                    begun.append(opened.pop())
                    ends.append(event.ts)
                else:
                    self._unopened += 1
            elif event.ph == "X":
                points.append(event)
            elif event.ph == "M":
                self._meta(event)
            else:
                self._cycles += 1
        start = to_ns([e.ts for e in begun])
        self._keep(begun, start, to_ns(ends) - start)
        self._keep(points, to_ns([e.ts for e in points]), to_ns([e.dur for e in points]))

    def _meta(self, event: Event) -> None:
        (args,) = decoded(_MetaArgs, [event.args])
        if args.started_us is not None and 0 < args.started_us < 10**16:
            self.started_us = args.started_us
        named = event.name == "process_name" and args.name
        if named and isinstance(event.pid, int) and len(self.tensors) < _MAX_TENSORS:
            self.tensors[event.pid] = str(args.name)

    def _keep(self, events: Sequence[Event], start: pl.Series, length: pl.Series) -> None:
        if not events:
            return
        names = [READY.format(e.name) if e.ph == "X" and e.name.isdigit() else e.name for e in events]
        frame = pl.DataFrame(
            {
                "lane": pl.Series(["comm"] * len(events), dtype=pl.Categorical()),
                "track": whole_numbers([e.pid for e in events]).fill_null(0),
                "name": pl.Series(names, dtype=pl.Categorical()),
                "start_ns": start,
                "dur_ns": length,
            }
        )
        whole = frame.drop_nulls()
        self._timeless += len(frame) - len(whole)
        whole, negative = without_negative(whole)
        self._negative += negative
        self._frames.append(whole)

    @property
    def damaged(self) -> int:
        """Phases and points that were given up."""
        return self._unended + self._unopened + self._timeless + self._negative

    @property
    def _unended(self) -> int:
        return sum(map(len, self._open.values()))

    def spans(self) -> pl.DataFrame | None:
        """All phases that ended and all points; null where there are none."""
        rows = pl.concat(self._frames) if self._frames else None
        if rows is None or rows.is_empty():
            return None
        return rows.with_columns(pl.col("start_ns") + self.started_us * 1000)

    def params(self) -> pl.DataFrame:
        """Names of the tensors by ``track``."""
        facts = {"trace.profiler": "horovod"} | {f"trace.tensor.{n}": t for n, t in self.tensors.items()}
        return pl.DataFrame({"key": list(facts), "value": [json.dumps(v) for v in facts.values()]})

    def notes(self) -> list[str]:
        """What was left out, as sentences."""
        told = (
            (self._cycles, f"{self._cycles} marks of cycles were left out"),
            (self._unended, f"{self._unended} phases never ended and were left out"),
            (self._unopened, f"{self._unopened} ends without a beginning were left out"),
            (self._timeless, f"{self._timeless} events without a time were left out"),
            (self._negative, NEGATIVE.format(self._negative)),
        )
        return [note for count, note in told if count]

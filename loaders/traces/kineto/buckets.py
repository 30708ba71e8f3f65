"""Events of one block sorted by kind. As there are millions, each costs a look-up and an append, and those whose name matters two."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from afterrun.loaders.traces.events import Event
from afterrun.loaders.traces.kineto.kinds import Kind, Side, fixed_kind, named_kind

_REMEMBERED = 200_000
"""Names whose kind is kept; traces with Python frames have tens of thousands."""

_MEMORY = "[memory]"

_Put = Callable[[Event], None]


class Buckets:
    """Events of the last block: those with a length ``of_side``, allocations, samples of counter tracks.

    ``points`` counts all others met so far: flows, metadata, instants.
    """

    def __init__(self) -> None:
        self.memory: list[Event] = []
        self.tracks: list[Event] = []
        self.points = 0
        self._buckets: dict[Kind, list[Event]] = {}
        self._by_category = _ByCategory(self._buckets)

    def sort(self, events: Sequence[Event]) -> None:
        """Take over one block of events; those of the block before are forgotten."""
        for bucket in self._buckets.values():
            bucket.clear()
        complete = self._by_category
        points: list[Event] = []
        for event in events:
            if event.ph == "X":
                complete[event.cat](event)
            else:
                points.append(event)
        complete.sort_by_name()
        self.memory = [e for e in points if e.ph == "i" and e.name == _MEMORY]
        self.tracks = [e for e in points if e.ph == "C"]
        self.points += len(points) - len(self.memory) - len(self.tracks)

    def of_side(self, side: Side) -> Iterator[tuple[Kind, list[Event]]]:
        """The filled buckets of a side."""
        return ((k, bucket) for k, bucket in self._buckets.items() if k.side == side and bucket)

    def all_of(self, side: Side) -> list[Event]:
        """The events of a side."""
        return [event for _, bucket in self.of_side(side) for event in bucket]

    def count(self, side: Side) -> int:
        """How many events are of a side."""
        return sum(len(bucket) for _, bucket in self.of_side(side))


class _ByCategory(dict[str, _Put]):
    """What takes a complete event of this category: its bucket, or a list that is sorted by name later."""

    def __init__(self, buckets: dict[Kind, list[Event]]) -> None:
        super().__init__()
        self._buckets = buckets
        self._unsorted: list[tuple[list[Event], _ByName]] = []

    def __missing__(self, category: str) -> _Put:
        kind = fixed_kind(category)
        if kind is not None:
            put = self._buckets.setdefault(kind, []).append
        else:
            waiting: list[Event] = []
            self._unsorted.append((waiting, _ByName(category, self._buckets)))
            put = waiting.append
        self[category] = put
        return put

    def sort_by_name(self) -> None:
        for waiting, named in self._unsorted:
            for event in waiting:
                named[event.name](event)
            waiting.clear()
            if len(named) > _REMEMBERED:
                named.clear()


class _ByName(dict[str, _Put]):
    """The bucket of complete events of one category by name."""

    def __init__(self, category: str, buckets: dict[Kind, list[Event]]) -> None:
        super().__init__()
        self._category, self._buckets = category, buckets

    def __missing__(self, name: str) -> _Put:
        put = self._buckets.setdefault(named_kind(self._category, name), []).append
        self[name] = put
        return put

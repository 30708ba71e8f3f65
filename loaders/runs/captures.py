"""Which files of the ranks of one job are of one capture, where a rank left several."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

_STAMP = re.compile(r"\.(\d{13}|\d{16}|\d{19})$")
"""When a profiler wrote the file, as its name ends: milliseconds, microseconds or nanoseconds since 1970."""

_NS_DIGITS = 19

Place = tuple[int, int]
"""(rank, number of its file)."""


def captures(stems: Mapping[int, Sequence[str]]) -> list[list[Place]]:
    """The files of each capture, from the names of the files of each rank, in order; empty where it cannot be told.

    Where every rank left as many files, the first ones are one capture, the second ones the next. Where one left
    fewer (it died, or its file was lost), times in the names decide: each file goes to the nearest of the rank with the most.
    """
    ranks = sorted(stems)
    if len(ranks) < 2:
        return []
    most = max(ranks, key=lambda rank: len(stems[rank]))
    if all(len(stems[rank]) == len(stems[most]) for rank in ranks):
        return [[(rank, k) for rank in ranks] for k in range(len(stems[most]))]
    times = {rank: [_time_ns(stem) for stem in stems[rank]] for rank in ranks}
    anchors = [t for t in times[most] if t is not None]
    if len(anchors) < len(times[most]):
        return []
    found: list[list[Place]] = [[] for _ in anchors]
    for rank in ranks:
        taken: set[int] = set()
        for k, t in enumerate(times[rank]):
            if t is None:
                return []
            nearest = min(range(len(anchors)), key=lambda a: abs(anchors[a] - t))
            if nearest in taken:
                return []
            taken.add(nearest)
            found[nearest].append((rank, k))
    return found


def _time_ns(stem: str) -> int | None:
    stamp = _STAMP.search(stem)
    return None if stamp is None else int(stamp[1].ljust(_NS_DIGITS, "0"))

"""Work on the next items of a stream while the one before is used: parsers of blocks leave the interpreter lock."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

ITEMS_AHEAD = 4
"""Items worked on while the ones before are used; they and their results are held in memory."""


def ahead(items: Iterator[T], work: Callable[[T], R], workers: int = 1) -> Iterator[tuple[T, R]]:
    """Each item with the result of the work on it, in order.

    The first is worked on alone, and used, before the second is fetched; no thread is started for one item. With one
    worker the work is done in order, too.
    """
    first = next(items, None)
    if first is None:
        return
    yield first, work(first)
    second = next(items, None)
    if second is None:
        return
    with ThreadPoolExecutor(workers) as pool:
        waiting: deque[tuple[T, Future[R]]] = deque()
        for item in chain([second], items):
            waiting.append((item, pool.submit(work, item)))
            if len(waiting) > ITEMS_AHEAD:
                done, result = waiting.popleft()
                yield done, result.result()
        for done, result in waiting:
            yield done, result.result()

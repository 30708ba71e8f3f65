"""The whole objects in JSON text that is damaged, cut short, or holds something else between them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

_OBJECT = re.compile(r'\{\s*"')
_SCAN_FACTOR = 16
"""Text is given up after so many times its own length has been looked at."""


def whole_objects(
    text: str, decoder: json.JSONDecoder, wanted: Callable[[dict[str, Any]], bool]
) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """(start, end, value) of each object that decodes and is ``wanted``, in order; none inside another one.

    Where an object does not decode or is not wanted, those inside it are looked for.
    """
    at, budget = 0, _SCAN_FACTOR * len(text)
    while budget > 0 and (start := _OBJECT.search(text, at)):
        at = start.start() + 1
        try:
            value, end = decoder.raw_decode(text, start.start())
        except json.JSONDecodeError as error:
            budget -= error.pos - start.start() + 1
            continue
        except RecursionError:
            budget -= len(text)
            continue
        budget -= end - start.start()
        if isinstance(value, dict) and wanted(value):
            yield start.start(), end, value
            at = end

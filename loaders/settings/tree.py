"""Nested settings as rows of ``params``: dotted keys, values as JSON text, nothing personal."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping

import polars as pl

from afterrun.loaders.limits import MAX_JSON_DEPTH
from afterrun.loaders.settings.personal import impersonal, is_personal

MAX_VALUE_CHARACTERS = 10_000
"""Longer texts and lists are cut: a setting that long is data."""


class Settings:
    """Collects parameters by dotted key; a later value of a key replaces the earlier one."""

    def __init__(self) -> None:
        self._values: dict[str, str] = {}
        self._withheld: set[str] = set()

    def __len__(self) -> int:
        return len(self._values)

    def add(self, key: str, value: object, depth: int = 0) -> None:
        """One setting or a tree of them."""
        if isinstance(value, Mapping) and value and depth < MAX_JSON_DEPTH:
            for name, inner in value.items():
                self.add(f"{key}.{name}" if key else str(name), inner, depth + 1)
        elif is_personal(key):
            self._withheld.add(key)
        else:
            self._values[impersonal(key)] = _json(value)

    def add_all(self, prefix: str, pairs: Iterable[tuple[str, object]]) -> None:
        """Several settings with this before their keys."""
        for key, value in pairs:
            self.add(prefix + key, value)

    def frames(self) -> dict[str, pl.DataFrame]:
        """The ``params`` frame, none if there is no setting."""
        if not self._values:
            return {}
        return {"params": pl.DataFrame({"key": [*self._values], "value": [*self._values.values()]})}

    def notes(self) -> Iterator[str]:
        """What was left out; not its names, which may be telling."""
        if self._withheld:
            n = len(self._withheld)
            yield f"{n} setting{'s' if n > 1 else ''} about persons, machines or secrets left out"


def _json(value: object) -> str:
    text = json.dumps(_clean(value, 0), ensure_ascii=False)
    if len(text) <= MAX_VALUE_CHARACTERS:
        return text
    return json.dumps(f"{text[:MAX_VALUE_CHARACTERS]}… ({len(text)} characters)", ensure_ascii=False)


def _clean(value: object, depth: int) -> object:
    if isinstance(value, str):
        more = f"… ({len(value)} characters)" if len(value) > MAX_VALUE_CHARACTERS else ""
        return impersonal(value[:MAX_VALUE_CHARACTERS]) + more
    if depth >= MAX_JSON_DEPTH:
        return "…"
    if isinstance(value, list):
        return [_clean(x, depth + 1) for x in value]
    if isinstance(value, Mapping):
        return {str(k): _clean(x, depth + 1) for k, x in value.items() if not is_personal(str(k))}
    return value if isinstance(value, (bool, int, float)) or value is None else str(value)

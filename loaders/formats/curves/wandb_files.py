"""What W&B leaves in the ``files`` folder of a run: the last values, the configuration, the machine.

They say little that ``run-<id>.wandb`` does not say too, but they are what is left where that file is lost. Of the
machine only versions, devices and the name of the program are taken over.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from afterrun.loaders.errors import UnreadableError
from afterrun.loaders.limits import LENIENT_JSON, MAX_JSON_BYTES, MIB, check_size
from afterrun.loaders.registry import Loader, Source
from afterrun.loaders.schema import Batch
from afterrun.loaders.settings.tree import Settings
from afterrun.loaders.settings.yamlsubset import read_mapping
from afterrun.loaders.tables.cells import moment
from afterrun.loaders.tables.textblocks import decode, decode_head
from afterrun.loaders.wandb.machine import environment, environment_in_config
from afterrun.loaders.wandb.values import INTERNAL, Skipped, leaves, media_type

MAX_YAML_BYTES = 16 * MIB

_CONFIG_LINES = re.compile(
    r"^(?:wandb_version:|_wandb:|[^\s#-][^\n]*:\s*\n(?:[ ]+desc:[^\n]*\n)?[ ]+value:)", re.MULTILINE
)
_VERSION = "wandb_version"
_NEXT_KEY = re.compile(r"[\s,{]*")
_COLON = re.compile(r"\s*:\s*")


class WandbSummary(Loader):
    """`wandb-summary.json`: the last value of every metric of a W&B run."""

    format = "wandb-summary"
    family = "curves"

    def sniff(self, path: Path, head: bytes) -> bool:
        """A JSON object of that name."""
        return path.name == "wandb-summary.json" and _is_object(head)

    def load(self, source: Source) -> Iterator[Batch]:
        """Parameters ``summary.KEY``. Raises ``LimitError`` over ``MAX_JSON_BYTES``."""
        values, damaged = _read_object(source)
        settings, skipped = Settings(), Skipped()
        for key, value in values.items():
            if key == INTERNAL:
                continue
            for name, leaf in leaves(key, value):
                if media_type(leaf) is None:
                    settings.add(f"summary.{name}", leaf)
                else:
                    skipped.add(name, leaf)
        notes = [*_damage_notes(damaged, len(values)), *skipped.notes(), *settings.notes()]
        yield Batch(frames=settings.frames(), damaged=damaged, notes=tuple(notes))


class WandbConfig(Loader):
    """`config.yaml` of a W&B run: its settings."""

    format = "wandb-config"
    family = "curves"

    def sniff(self, path: Path, head: bytes) -> bool:
        """A file of that name whose keys have a `value` below them, or the key `_wandb`."""
        return path.name == "config.yaml" and _CONFIG_LINES.search(decode_head(head)) is not None

    def load(self, source: Source) -> Iterator[Batch]:
        """Parameters by dotted key. Raises ``LimitError`` over ``MAX_YAML_BYTES``."""
        check_size(source.name, source.size_bytes, MAX_YAML_BYTES)
        document = read_mapping(decode(source.path.read_bytes())[0])
        settings = Settings()
        for key, entry in document.values.items():
            if key not in (INTERNAL, _VERSION):
                settings.add(
                    key, entry.get("value") if isinstance(entry, Mapping) and "value" in entry else entry
                )
        unread = document.unread
        settings.add_all("", environment(environment_in_config(document.values.get(INTERNAL))))
        notes = (
            [f"{len(unread)} keys in a form of YAML that is not read: {', '.join(unread[:5])}"]
            if unread
            else []
        )
        yield Batch(frames=settings.frames(), damaged=len(unread), notes=(*notes, *settings.notes()))


class WandbMetadata(Loader):
    """`wandb-metadata.json`: Python, devices and program of a W&B run; nothing about the person."""

    format = "wandb-metadata"
    family = "curves"

    def sniff(self, path: Path, head: bytes) -> bool:
        """A JSON object of that name."""
        return path.name == "wandb-metadata.json" and _is_object(head)

    def load(self, source: Source) -> Iterator[Batch]:
        """Parameters ``env.KEY`` and the start. Raises ``LimitError`` over ``MAX_JSON_BYTES``."""
        values, damaged = _read_object(source)
        settings = Settings()
        settings.add_all("", environment(values))
        frames = settings.frames()
        started = values.get("startedAt")
        start_ns = moment(started) if isinstance(started, str) else None
        if start_ns is not None:
            row = {"t_ns": [start_ns], "kind": ["start"], "text": ["W&B run started"]}
            frames["marks"] = pl.DataFrame(row)
        yield Batch(frames=frames, damaged=damaged, notes=tuple(_damage_notes(damaged, len(values))))


def _is_object(head: bytes) -> bool:
    text = decode_head(head).strip().strip("\0")
    return not text or text.startswith("{")


def _read_object(source: Source) -> tuple[dict[str, Any], int]:
    """The members of a JSON object, bare NaN allowed, and 1 if it is cut or damaged behind them."""
    check_size(source.name, source.size_bytes, MAX_JSON_BYTES)
    text = decode(source.path.read_bytes())[0].strip().strip("\0").strip()
    if not text:
        return {}, 0
    try:
        whole = LENIENT_JSON.decode(text)
    except (ValueError, RecursionError):
        return _members(text), 1
    if not isinstance(whole, dict):
        raise UnreadableError(f"{source.name}: JSON, but no object")
    return whole, 0


def _members(text: str) -> dict[str, Any]:
    """The members before the first one that cannot be decoded."""
    found: dict[str, Any] = {}
    at = 0
    while (start := _NEXT_KEY.match(text, at)) is not None and text[start.end() : start.end() + 1] == '"':
        try:
            key, at = LENIENT_JSON.raw_decode(text, start.end())
            colon = _COLON.match(text, at)
            if colon is None:
                break
            value, at = LENIENT_JSON.raw_decode(text, colon.end())
        except (ValueError, RecursionError):
            break
        if at == len(text) and not isinstance(value, (str, dict, list)):
            break  # a number at the very end may have lost its last digits
        found[key] = value
    return found


def _damage_notes(damaged: int, kept: int) -> Iterator[str]:
    if damaged:
        yield f"the JSON is cut or damaged: {kept} members before that were read"

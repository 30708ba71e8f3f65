"""A YAML file of settings beside the logs of a run, as rows of ``params``."""

from __future__ import annotations

from afterrun.loaders.limits import MIB, check_size
from afterrun.loaders.registry import Source
from afterrun.loaders.schema import Batch
from afterrun.loaders.settings.tree import Settings
from afterrun.loaders.settings.yamlsubset import read_mapping
from afterrun.loaders.tables.textblocks import decode

MAX_YAML_BYTES = 16 * MIB
NAMED = 5
"""Keys named in the note about what could not be read."""


def yaml_settings(source: Source) -> Batch:
    """All settings by dotted key; a key that cannot be read is damaged. Raises ``LimitError`` over ``MAX_YAML_BYTES``."""
    check_size(source.name, source.size_bytes, MAX_YAML_BYTES)
    document = read_mapping(decode(source.path.read_bytes())[0])
    settings = Settings()
    for key, value in document.values.items():
        settings.add(key, value)
    lost = document.unread
    notes = (
        [f"{len(lost)} keys in a form of YAML that is not read: {', '.join(lost[:NAMED])}"] if lost else []
    )
    return Batch(frames=settings.frames(), damaged=len(lost), notes=(*notes, *settings.notes()))

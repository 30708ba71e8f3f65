"""A dictionary of metrics in a line, as Python prints it or as JSON: the Hugging Face Trainer, fairseq.

``{'loss': 2.3, 'grad_norm': 1.1, 'learning_rate': 5e-05, 'epoch': 0.12}`` may be glued to a progress bar. Nothing is
evaluated: the text is matched. Numbers may stand in quotes. A dictionary counts as metrics when it says where it
lies (``epoch``, ``step``) or holds a loss; configurations printed as dictionaries do neither.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from afterrun.loaders.names import canonical
from afterrun.loaders.textlog.grammar import NAN_WORD, Axes, Field, Grammar, Number, Record, Skeleton
from afterrun.loaders.textlog.tokens import NUM

_DICT = re.compile(r"\{ ?['\"][^{}]*\}")
_ITEM = re.compile(
    rf"(?P<q>['\"])(?P<key>[^'\"]+)(?P=q) ?: (?P<v>['\"]?)(?P<value>{NUM}|{NAN_WORD})(?P=v)(?=[,}} ])",
    re.IGNORECASE,
)
_STEPS = ("global_step", "num_updates", "step", "iter", "iteration")
_SPLIT = re.compile(r"^(?:train|valid|val|eval|test)_")  # fairseq: valid_num_updates
_EPOCHS = ("epoch", "update")
_TOKENS = ("num_input_tokens_seen", "num_tokens")
_TELLING = frozenset({"loss", "quality"})
_MAX_ITEMS = 500


class EmbeddedDict(Grammar):
    """Dictionaries of metrics within a line."""

    name = "embedded_dict"
    probes = ("{'", '{"', "{ '", '{ "')
    use = "beside"

    def read(self, line: Skeleton) -> Iterable[Record]:
        """One record for each dictionary."""
        if line.bare and line.text.startswith('{"'):
            return  # a file of JSON lines has a reader of its own
        for found in _DICT.finditer(line.text):
            part = line.part(found.start(), found.end())
            items = {
                m["key"]: Field(m["key"], number, part.slots(*m.span("key")))
                for m in _ITEM.finditer(part.text)
                if (number := part.number(m, "value")) is not None
            }
            if 0 < len(items) <= _MAX_ITEMS and _is_metrics(items):
                yield _record(items)


def _is_metrics(items: dict[str, Field]) -> bool:
    placed = any(key in items for key in (*_STEPS, *_EPOCHS))
    return len(items) > placed and (placed or any(canonical(k).kind in _TELLING for k in items))


def _record(items: dict[str, Field]) -> Record:
    bare = {_SPLIT.sub("", key): f.number for key, f in items.items() if f.number.slot is not None}

    def first(names: tuple[str, ...]) -> Number | None:
        return next((bare[n] for n in names if n in bare), None)

    # fairseq counts ``epoch`` whole and says in ``update`` how far the epoch is
    epoch = items.get("update") or items.get("epoch")
    # rows of training have the time too where the trainer counts tokens
    final = "train_runtime" in items and "loss" not in items
    notice = ("finish", "the trainer printed its final record") if final else None
    return Record(
        fields=tuple(items.values()),
        axes=Axes(step=first(_STEPS), epoch=epoch.number if epoch else None, tokens=first(_TOKENS)),
        notice=notice,
    )

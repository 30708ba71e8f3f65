"""tqdm bars: ``Epoch 3:  45%|####5     | 45/100 [00:12<00:15, 3.60it/s, loss=0.31]``, drawn again and again.

The numbers behind the rate are metrics of the training loop, the rate is one where the bar is a training bar: it
has no name, or one that speaks of training, epochs or steps. Bars of downloads, tokenisers and evaluations are
none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from afterrun.loaders.names import canonical
from afterrun.loaders.textlog.grammar import VALUE, Axes, Field, Grammar, Number, Record, Skeleton
from afterrun.loaders.textlog.tokens import NUM

_BAR = re.compile(
    rf"(?P<name>[^|{NUM}%]*(?:{NUM}[^|{NUM}%]*)?(?:/{NUM}[^|{NUM}%]*)?[: ])?{NUM}%\|[^|]*\| ?(?P<n>{NUM})/(?P<total>{NUM}) \[(?P<rest>[^\]]*)"
)
_RATE = re.compile(rf"(?P<value>{NUM})(?P<unit>it/s|s/it|step/s|s/step|batch/s|s/batch)(?=,|$)")
_ITEM = re.compile(rf", ?(?P<key>[A-Za-z][\w./@ -]*?) ?[=:] ?(?P<value>{VALUE})(?=,|$|[ %s])", re.IGNORECASE)
_EPOCH = re.compile(rf"epoch:? ?\[?({NUM})(?:/({NUM}))?", re.IGNORECASE)
_TRAINING = re.compile(r"train|epoch|step|iter|batch", re.IGNORECASE)
_HELD_OUT = re.compile(r"\b(val|valid|validation|validating|test|testing|eval|evaluating)\b", re.IGNORECASE)
_SPLITS = {"t": "test", "e": "eval", "v": "val"}
_NO_METRIC = frozenset({"v_num"})


class Tqdm(Grammar):
    """Progress bars of training loops."""

    name = "tqdm"
    probes = ("%|",)
    use = "beside"

    def read(self, line: Skeleton) -> Iterable[Record]:
        """One record a bar; bars glued together are one each."""
        for found in _BAR.finditer(line.text):
            name = (found["name"] or "").strip(" :")
            begin, end = found.span("rest")
            items = _items(line.part(begin, end))
            training = not name or bool(_TRAINING.search(name))
            held_out = _HELD_OUT.search(name)
            if held_out:
                items = [Field(f"{_SPLITS[held_out[1][0].lower()]}/{f.tag}", f.number) for f in items]
            elif training and not any(canonical(f.tag).metric == "steps_per_s" for f in items):
                items += _rate(line.part(begin, end))
            if items and (training or _telling(items)):
                yield Record(fields=tuple(items), axes=_axes(line, found), sure=_telling(items))


def _items(rest: Skeleton) -> list[Field]:
    found = ((m["key"].strip(), rest.number(m, "value")) for m in _ITEM.finditer(rest.text))
    return [Field(key, number) for key, number in found if number is not None and key not in _NO_METRIC]


def _telling(items: list[Field]) -> bool:
    return any(canonical(f.tag).kind in ("loss", "quality") for f in items)


def _rate(rest: Skeleton) -> list[Field]:
    found = _RATE.search(rest.text)
    number: Number | None = rest.number(found, "value") if found else None
    return [Field(found["unit"], number)] if found and number is not None else []


def _axes(line: Skeleton, found: re.Match[str]) -> Axes:
    epoch = _EPOCH.search(line.text, *found.span("name")) if found["name"] else None
    return Axes(
        epoch=line.number(epoch) if epoch else None,
        epochs=line.number(epoch, 2) if epoch else None,
        batch=line.number(found, "n"),
        batches=line.number(found, "total"),
    )

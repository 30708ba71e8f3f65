"""Lines that nobody's format describes: ``Epoch 1/20 time=3.1s train_loss=0.4321 lr=1e-3``, ``Epoch [3/10], Step
[100/500], Loss: 0.1234``, ``val Loss: 0.51 Acc: 0.74``.

A line counts where it says where it lies and holds a known metric; where one of the two is missing its tags must
repeat and change, which listings of settings do not. The key of the line is the tag, with the word for the
held-out set before it where the line names that once for all its values.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from afterrun.loaders.names import SPLIT_WORDS, canonical
from afterrun.loaders.textlog.grammar import (
    TIME_UNITS,
    VALUE,
    Axes,
    Field,
    Grammar,
    Number,
    Record,
    Skeleton,
    seconds_key,
)
from afterrun.loaders.textlog.tokens import NUM

_AT = rf"(?P<sep> ?[:=#]? ?)[\[(]? ?({NUM})(?: ?(?:/|of|out of) ?({NUM}))?(?: ?\( ?{NUM} ?%\))?[\])]?"
_EPOCH = re.compile(rf"(?<![-\w])(epoch|ep)\b{_AT}", re.IGNORECASE)
_STEP = re.compile(
    rf"(?<![-\w])(global[ _]?step|step|iters?|iteration|update|(?:num_|total_)?timesteps?)\b{_AT}",
    re.IGNORECASE,
)
_BATCH = re.compile(rf"(?<![-\w])(batch|minibatch)\b{_AT}", re.IGNORECASE)
_BRACKET = re.compile(rf"[ \[]*({NUM})/({NUM})(?: ?\( ?{NUM} ?%\))?\]")
_FIELD = re.compile(
    rf"(?<![A-Za-z0-9_])(?<!{NUM}-)(?P<key>[A-Za-z](?:[^=:,;|{NUM}\[\](){{}}\"'<>]|(?<=\d):(?=[.\d]))*?) ?(?P<sep>=|:) ?(?:tensor)?[\[(]?(?P<value>{VALUE})"
    rf"(?:/(?P<over>{NUM}))?(?P<unit> ?(?:ns|us|msec|ms|secs|sec|seconds|s|min|it/s|%|[KMGT]i?B)(?![A-Za-z]))?(?![:\w])",
    re.IGNORECASE,
)
_WORDS = re.compile(
    rf"(?P<key>[A-Za-z][\w/@.]*(?: [A-Za-z][\w/@.]*)?) (?P<value>{VALUE})(?P<unit>ms|s|%)?(?![:/\w])",
    re.IGNORECASE,
)
_TOP = re.compile(rf"\btop[ -]?{NUM} $", re.IGNORECASE)
_SPLIT = re.compile(r"\b(train|training|val|valid|validation|test|eval|evaluation|dev)\b", re.IGNORECASE)
_CODE = re.compile(
    r"\bdef |print\(|\breturn |\bimport |self\.|\bf[\"']|args\.| == |\);|^#|^//|^\+ |<[a-z]+>|\\n"
)
_TELLING = frozenset({"loss", "quality", "gradient", "time", "throughput"})
_MEASURES = frozenset({"loss", "quality"})
_SKIPPED = frozenset({"eta", "seed", "epoch", "ep"})
_LONGEST = 1500
_MOST_WORDS = 4
_MOST_WORDS_BESIDE = 3


class KeyValue(Grammar):
    """Generic lines of keys and values."""

    name = "key_value"
    probes = (NUM, "nan", "inf")
    use = "generic"

    def read(self, line: Skeleton) -> Iterable[Record]:
        """At most one record a line."""
        if len(line.text) > _LONGEST or _CODE.search(line.text):
            return
        axes, keyed, rest = _axes(line)
        fields = _fields(line, rest)
        if not fields and axes:
            fields = _worded(line, rest)
        kinds = {canonical(f.tag).kind for f in fields}
        if axes and fields:
            sure = bool(kinds & _TELLING)
            ends = axes.step is None and axes.batch is None
            yield Record(fields=(*keyed, *fields), axes=axes, sure=sure, ends_epoch=ends)
        elif axes:
            if len(re.findall(r"[A-Za-z]+", rest)) <= _MOST_WORDS_BESIDE:
                yield Record(axes=axes, sure=False)
        elif kinds & _MEASURES:
            held_out = any(canonical(f.tag).split in ("val", "test") for f in fields)
            yield Record(fields=fields, inherits=True, ends_epoch=held_out, sure=False)


def _axes(line: Skeleton) -> tuple[Axes, tuple[Field, ...], str]:
    """Where the line lies, the axes that are written as a key with its value, and the text with them blanked."""
    text = line.text
    numbers: dict[str, Number | None] = {}
    keyed: list[Field] = []
    for name, pattern in (("epoch", _EPOCH), ("step", _STEP), ("batch", _BATCH)):
        found = pattern.search(text)
        if found is None:
            continue
        numbers[name], numbers[f"{name}s"] = line.number(found, 3), line.number(found, 4)
        number = numbers[name]
        if number is not None and found["sep"].strip() in ("=", ":") and not found[4] and "[" not in found[0]:
            keyed.append(Field(found[1], number))
        text = _blank(text, found.start(), found.end())
        behind = _BRACKET.match(text, found.end()) if name == "epoch" else None
        if behind:
            numbers["batch"], numbers["batches"] = line.number(behind, 1), line.number(behind, 2)
            text = _blank(text, behind.start(), behind.end())
    epoch, step, steps = numbers.get("epoch"), numbers.get("step"), numbers.get("steps")
    batch, batches = numbers.get("batch"), numbers.get("batchs") or numbers.get("batches")
    if epoch and step and steps and not batch:  # a step of so many beside an epoch counts within it
        batch, batches, step, steps = step, steps, None, None
    axes = Axes(
        step=step, steps=steps, epoch=epoch, epochs=numbers.get("epochs"), batch=batch, batches=batches
    )
    return axes, tuple(keyed), text


def _blank(text: str, begin: int, end: int) -> str:
    """The text with a stretch taken out, in as many signs, so that positions and slots stay as they are."""
    return text[:begin] + re.sub(rf"[^{NUM}]", ";", text[begin:end]) + text[end:]


def _fields(line: Skeleton, rest: str) -> tuple[Field, ...]:
    found: list[Field] = []
    split = ""
    for match in _FIELD.finditer(rest):
        key = _key(match["key"], match["sep"])
        if key is None or _TOP.search(
            rest[: match.start()]
        ):  # of ``top 5 acc`` and ``top 1 acc`` nobody knows which
            continue
        if not found:
            split = _held_out(rest[: match.start()] + key)
        number = _number(line, match, key)
        if number is not None:
            key, _ = seconds_key(key)
            unit = (match["unit"] or "").strip()
            found.append(Field(f"{key} ({unit})" if unit.endswith("B") else key, number))
    return tuple(Field(_with_split(split, f.tag), f.number) for f in found)


def _key(text: str, sep: str) -> str | None:
    """The key that stands before a separator: one word before ``=``, a few before a colon."""
    key = re.split(r" - |  | \u2013 ", text)[-1].strip(" -*#>.\u2022")
    key = key.rsplit(" ", 1)[-1] if sep == "=" else key
    words = key.split(" ")
    if not key or len(words) > _MOST_WORDS or key.lower() in _SKIPPED or not key[0].isalpha():
        return None
    return key


def _number(line: Skeleton, match: re.Match[str], key: str) -> Number | None:
    """The value; a part of a whole is a share, and only where the key is a quality."""
    slot_line = line
    unit = (match["unit"] or "").strip()
    scale = TIME_UNITS.get(unit, seconds_key(key)[1])
    number = slot_line.number(match, "value", scale=scale)
    if match["over"] is None or number is None or number.slot is None:
        return number if match["over"] is None else None
    share = canonical(key).kind == "quality" or "acc" in key.lower()
    return Number(number.slot, over=line.slot(match.start("over"))) if share else None


def _worded(line: Skeleton, rest: str) -> tuple[Field, ...]:
    """Pairs without a separator (``loss 0.5``), for names that are known."""
    found = []
    for match in _WORDS.finditer(rest):
        both, last = match["key"], match["key"].rsplit(" ", 1)[-1]
        key = next((k for k in (both, last) if canonical(k).metric and canonical(k).kind != "axis"), None)
        number = line.number(match, "value", scale=TIME_UNITS.get(match["unit"] or "", 1.0))
        if key is not None and number is not None:
            found.append(Field(key, number))
    return tuple(found)


def _held_out(lead: str) -> str:
    """The word for a held-out set that a line begins with, or a training word right before its first key."""
    found = _SPLIT.search(lead)
    if found is None:
        return ""
    held_out = SPLIT_WORDS.get(found[1].lower()) in ("val", "test")
    return (
        found[1]
        if held_out or (lead.rstrip().lower().startswith(found[1].lower()) and NUM not in lead)
        else ""
    )


def _with_split(split: str, key: str) -> str:
    return key if not split or _SPLIT.search(key.replace("_", " ")) else f"{split} {key}"

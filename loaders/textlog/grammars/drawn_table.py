"""Tables of two columns between rules, as Stable-Baselines3, OpenAI's Baselines and Spinning Up draw them::

    ---------------------------------
    | rollout/           |          |
    |    ep_rew_mean     | 21.3     |
    | time/              |          |
    |    total_timesteps | 2048     |
    ---------------------------------

The table is one record: its rows lie at the step that one of them tells. A row without a value names the section
of the rows below it, whose tags it begins.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from afterrun.loaders.textlog.grammar import VALUE, Axes, Field, Grammar, Number, Record, Skeleton, Span

_RULE = rb"---\n"  # the end of one: a search for three dashes is five times as fast as one for the line
_ROW = rb"\|[^|\n]*\|[^|\n]*\| *\n"
_ROWS = _RULE + rb"(?:" + _ROW + rb"){2,}"
_CELLS = re.compile(r"\| ?(?P<key>[^|]*?) ?\| ?(?P<value>[^|]*?) ?\|(?= |$)")
_VALUE = re.compile(VALUE, re.IGNORECASE)
_TIMESTEPS = (
    "total_timesteps", "total_num_steps", "totalenvinteracts", "totalenvsteps", "timestepssofar", "timesteps_so_far",
    "num_timesteps", "timesteps", "total_steps", "steps",
)  # fmt: skip
_UPDATES = ("nupdates", "n_updates", "iteration", "iterations", "itr")
"""Keys that tell the step, most telling first. Updates are the step where a whole table counts nothing else."""


class DrawnTable(Grammar):
    """Drawn tables of reinforcement learning."""

    name = "drawn_table"
    probes = ("- | ",)
    use = "beside"
    spans = (
        Span(
            probe=b"---\n|",
            opening=b"---\n",
            whole=re.compile(_ROWS + rb"-*" + _RULE),
            begun=re.compile(_RULE + rb"(?:" + _ROW + rb")*(?:\|[^\n]*\n)?\Z"),
            left=re.compile(_ROWS),  # the last table of a killed run may break off within a row
        ),
    )

    def read(self, line: Skeleton) -> Iterable[Record]:
        """One record a table."""
        if not line.text.startswith("---"):
            return
        fields: list[Field] = []
        section, of_section = "", tuple[int, ...]()
        for found in _CELLS.finditer(line.text):
            key = found["key"].strip()
            if not found["value"]:
                section = key.rstrip("/") + "/" if key else ""
                of_section = line.slots(*found.span("key"))
            elif key and _VALUE.fullmatch(found["value"]):
                number = line.number(found, "value")
                if number is not None:
                    fields.append(
                        Field(section + key, number, (*of_section, *line.slots(*found.span("key"))))
                    )
        closed = line.text.endswith("---")
        step = _step(fields, (*_TIMESTEPS, *_UPDATES) if closed else _TIMESTEPS)
        if len(fields) > 1 and (step is not None or closed):
            yield Record(fields=tuple(fields), axes=Axes(step=step), sure=step is not None)


def _step(fields: list[Field], names: tuple[str, ...]) -> Number | None:
    told = {f.tag.rsplit("/", 1)[-1].lower().replace(" ", "_"): f.number for f in reversed(fields)}
    return next((told[name] for name in names if name in told), None)

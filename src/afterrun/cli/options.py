"""Options that several commands share, merged into one ``Settings`` object."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from afterrun.loaders.errors import UsageError
from afterrun.settings import Settings, given_pairs, load

if TYPE_CHECKING:
    import polars as pl

F = TypeVar("F", bound=Callable[..., Any])


class _OutputFolder(click.Path):
    """A folder to write to; an empty name would mean the folder one stands in."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("the name of the folder is empty", param, ctx)
        return super().convert(value, param, ctx)


OUTPUT = _OutputFolder(path_type=Path, file_okay=False)

_SHARED = (
    click.argument("paths", nargs=-1, required=True, metavar="PATH..."),
    click.option(
        "--config",
        type=click.Path(path_type=Path, dir_okay=False),
        help="Configuration file; default: afterrun.toml or [tool.afterrun], here or above.",
    ),
    click.option("--group", metavar="RULE", help="How files become runs: auto, folder or file."),
    click.option(
        "--map",
        "metrics",
        multiple=True,
        metavar="TAG=METRIC:SPLIT:DIR",
        help="What a tag means, for example 'dev/xent=loss:val:min'. Repeatable.",
    ),
    click.option(
        "--now",
        metavar="TIME",
        help="Moment of analysis (ISO 8601); default: the newest time recorded in the input.",
    ),
    click.option("--verify", is_flag=True, default=None, help="Check payload checksums of all records."),
)

_PASSES = (
    click.option(
        "--pair",
        "pairs",
        multiple=True,
        metavar="TRAIN=VAL",
        help="Training and held-out tag that belong together. Repeatable.",
    ),
    click.option(
        "--set",
        "thresholds",
        multiple=True,
        metavar="CODE.NAME=VALUE",
        help="Set a threshold of a pass (see afterrun explain CODE). Repeatable.",
    ),
)


def reading(command: F) -> F:
    """PATH... and the options of reading."""
    return _apply(command, _SHARED)


def diagnosing(command: F) -> F:
    """The options of the passes."""
    return _apply(command, _PASSES)


def _apply(command: F, options: tuple[Callable[[F], F], ...]) -> F:
    for option in reversed(options):
        command = option(command)
    return command


def settings_from(flags: dict[str, Any]) -> Settings:
    """Settings from the flags of one call, over environment and file."""
    config = flags.pop("config", None)
    flags["metrics"] = dict(_map_item(m) for m in flags.get("metrics") or ())
    flags["pairs"] = list(flags.get("pairs") or ()) or None
    flags["passes"] = _thresholds(flags.pop("thresholds", None) or ())
    return load(config, flags)


def unknown_tags(settings: Settings, metrics: pl.DataFrame) -> list[str]:
    """A sentence for each tag of ``--map`` and ``--pair`` that no run has, with the nearest ones."""
    named = [("--map", tag) for tag in settings.metrics]
    named += [("--pair", tag) for pair in given_pairs(settings) for tag in pair]
    if not named:
        return []
    import difflib  # noqa: PLC0415  # only where tags are given

    known = sorted(str(tag) for tag in metrics["tag"].unique().drop_nulls())
    told = []
    for option, tag in dict.fromkeys(named):
        if tag not in known:
            near = difflib.get_close_matches(tag, known, n=3, cutoff=NEAR)
            hint = f"; near it: {', '.join(near)}" if near else "; 'afterrun inspect' lists the tags"
            told.append(f"{option}: no run has the tag {tag!r}{hint}")
    return told


def unmet_tags(patterns: list[str]) -> list[str]:
    """A sentence for each ``--tag`` that no metric fits."""
    return [f"--tag: no run has a metric like {p!r}; 'afterrun inspect' lists the tags" for p in patterns]


NEAR = 0.6
"""Likeness (difflib ratio) from which a known word is offered for an unknown one."""


def _map_item(text: str) -> tuple[str, str]:
    tag, eq, meaning = text.rpartition("=")
    if not eq or not tag or not meaning:
        raise UsageError(f"--map {text!r}: write 'TAG=metric:split:min|max', for example 'dev/xent=loss:val'")
    return tag, meaning


def _thresholds(items: tuple[str, ...]) -> dict[str, dict[str, str]]:
    out: dict[str, dict[str, str]] = {}
    for item in items:
        left, eq, value = item.partition("=")
        code, dot, name = left.partition(".")
        if not eq or not dot or not code or not name:
            raise UsageError(f"--set {item!r}: write CODE.NAME=VALUE, for example overfit.min_evals=8")
        out.setdefault(code.strip(), {})[name.strip().replace("-", "_")] = value.strip()
    return out

"""Configuration from one place: ``afterrun.toml`` or ``[tool.afterrun]``, then ``AFTERRUN_*``, then flags."""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from afterrun.loaders.errors import UsageError
from afterrun.loaders.names import Name, parse_map

ENV_PREFIX = "AFTERRUN_"
IGNORED_ENV = frozenset({"AFTERRUN_CORPUS", "AFTERRUN_CONFIG"})
"""Variables with our prefix that are no settings."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a user may set, with its default. Each field is also ``AFTERRUN_<FIELD>``."""

    metrics: dict[str, str] = {}
    """``[metrics]``: TAG = "metric:split:min|max"."""
    pairs: list[str] = []
    """``TRAIN=VAL`` pairs of tags."""
    passes: dict[str, dict[str, Any]] = {}
    """``[passes.CODE]``: thresholds by name."""
    group: str = "auto"
    """How files become runs: auto, folder or file."""
    verify: bool = False
    """Check payload checksums of all records."""
    now: str = ""
    """The moment of analysis (ISO 8601); default: the newest time recorded in the input."""
    figures: str = "24"
    """Figures to draw: a number, all or none."""
    formats: tuple[str, ...] = ("png", "svg")
    """File formats of figures: png, svg, pdf."""
    fail_on: str = ""
    """warning, critical or codes, comma-separated."""
    fail_on_possible: bool = False
    """Whether possible findings meet fail_on, too."""
    strict: bool = False
    """Exit with 4 when some source or pass failed."""


def load(
    config: Path | None,
    flags: Mapping[str, Any],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> Settings:
    """Settings merged from file, environment and flags (None = not given). Raises ``UsageError``."""
    env = os.environ if env is None else env
    merged = _from_file(config, cwd or Path.cwd())
    merged.update(_from_env(env))
    for key, value in flags.items():
        if value is None or value in ((), {}):
            continue
        merged[key] = _merge(merged.get(key), value)
    _check_keys(merged, "setting")
    try:
        settings = msgspec.convert(merged, Settings, strict=False)
    except msgspec.ValidationError as error:
        raise UsageError(f"configuration: {error}") from error
    return _checked(settings)


def _merge(old: Any, new: Any) -> Any:
    """Tables are merged, lists extended, everything else replaced."""
    if isinstance(old, dict) and isinstance(new, dict):
        return {**old, **{k: _merge(old.get(k), v) for k, v in new.items()}}
    return new


def _from_file(config: Path | None, cwd: Path) -> dict[str, Any]:
    if config is not None:
        return _read(config, config.name == "pyproject.toml")
    for folder in (cwd, *cwd.parents):
        if (folder / "afterrun.toml").is_file():
            return _read(folder / "afterrun.toml", in_pyproject=False)
        if (folder / "pyproject.toml").is_file():
            found = _read(folder / "pyproject.toml", in_pyproject=True)
            if found:
                return found
    return {}


def _read(path: Path, in_pyproject: bool) -> dict[str, Any]:
    try:
        document = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError as error:
        raise UsageError(f"{path}: no such file") from error
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: cannot be read as TOML: {error}") from error
    table = document.get("tool", {}).get("afterrun", {}) if in_pyproject else document
    found = {str(k).replace("-", "_"): v for k, v in table.items()}
    _check_keys(found, f"key in {path.name}")
    return found


def _from_env(env: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in sorted(env.items()):
        if not name.startswith(ENV_PREFIX) or name in IGNORED_ENV:
            continue
        key = name[len(ENV_PREFIX) :].lower()
        _check_keys({key: value}, f"environment variable {name}: setting")
        if key in ("metrics", "passes"):
            raise UsageError(f"{name}: tables are set in afterrun.toml or by --map and --set")
        found[key] = (
            [v.strip() for v in value.split(",") if v.strip()] if key in ("formats", "pairs") else value
        )
    return found


def _check_keys(found: Iterable[str], what: str) -> None:
    for key in found:
        if key not in Settings.__struct_fields__:
            near = difflib.get_close_matches(key, Settings.__struct_fields__, n=1, cutoff=0.6)
            hint = (
                f"; did you mean {near[0]!r}?"
                if near
                else f"; there are {', '.join(Settings.__struct_fields__)}"
            )
            raise UsageError(f"unknown {what} {key!r}{hint}")


def _checked(s: Settings) -> Settings:
    if s.group not in ("auto", "folder", "file"):
        raise UsageError(f"group is auto, folder or file, not {s.group!r}")
    if s.figures not in ("all", "none") and not s.figures.isdigit():
        raise UsageError(f"figures is a number, all or none, not {s.figures!r}")
    wrong = [f for f in s.formats if f not in ("png", "svg", "pdf")]
    if wrong:
        raise UsageError(f"formats are png, svg and pdf, not {wrong[0]!r}")
    return s


def name_overrides(s: Settings) -> dict[str, Name]:
    """Meaning of tags given by the user."""
    return dict(parse_map(f"{tag}={meaning}") for tag, meaning in s.metrics.items())


def given_pairs(s: Settings) -> list[tuple[str, str]]:
    """Pairs of (training tag, held-out tag)."""
    out = []
    for text in s.pairs:
        train, eq, val = text.partition("=")
        if not eq or not train.strip() or not val.strip():
            raise UsageError(f"--pair {text!r}: write 'TRAIN=VAL', for example 'train/loss=dev/xent'")
        out.append((train.strip(), val.strip()))
    return out


def now_ns(s: Settings) -> int | None:
    """The moment of analysis in ns UTC, or None for the newest time in the input."""
    if not s.now:
        return None
    from datetime import UTC, datetime  # noqa: PLC0415  # few calls need it

    try:
        moment = datetime.fromisoformat(s.now)
    except ValueError as error:
        raise UsageError(f"now {s.now!r} is no ISO 8601 time, for example 2026-11-30T22:00:00Z") from error
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return int(moment.timestamp() * 1e9)


def figure_limit(s: Settings) -> int | None:
    """Number of figures; None for all, 0 for none."""
    return None if s.figures == "all" else 0 if s.figures == "none" else int(s.figures)

"""What a pass is, and how the passes are found: by walking ``passes/``.

A pass is a frozen dataclass; its fields are its thresholds, each made with ``threshold`` so that
configuration, ``--set``, ``afterrun explain`` and the docs come from one place. A new pass is one new
file in ``passes/``; no list is edited.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import math
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from functools import cache
from graphlib import TopologicalSorter
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import msgspec

from afterrun.analyzer.finding import Finding
from afterrun.loaders.errors import UsageError

if TYPE_CHECKING:
    from afterrun.analyzer.view import RunView

T = TypeVar("T")


def threshold(default: T, doc: str, *, unit: str = "", source: str = "") -> T:
    """A named, documented threshold of a pass: its default, meaning, unit and where it comes from."""
    field: T = dataclasses.field(default=default, metadata={"doc": doc, "unit": unit, "source": source})
    return field


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """The page of a code: what ``afterrun explain CODE`` and the docs show."""

    meaning: str
    """What it means, in two sentences."""
    rule: str
    """How it is decided: the rule in words, then the formula."""
    abstains: str
    """When it says nothing, and which input would be needed."""
    confused_with: str
    """What it is often taken for."""
    remedies: tuple[str, ...]
    """What people do about it, in the order they should try."""
    sources: tuple[str, ...]
    """Where the rule comes from."""


class Pass(ABC):
    """One question put to one run. Subclasses are ``@dataclass(frozen=True)``.

    Class data:

    ``code``     kebab-case, unique; the name of the finding
    ``title``    a few words for tables of contents
    ``about``    ``curves``, ``gradients``, ``steps``, ``gpu``, ``memory`` or ``job``
    ``needs``    what must be recorded, as ``table`` or ``table:metric`` or ``table:metric/split``; the
                 pipeline answers *abstained* by itself where one is absent
    ``after``    codes whose findings this pass wants to see in ``view.earlier``
    ``every_point``  its verdict rests on how points follow one another; from an export that holds a sample of the
                 rows the pipeline lets it claim nothing more than *possible*
    ``explain``  the page of the code
    """

    code: ClassVar[str]
    title: ClassVar[str]
    about: ClassVar[str]
    needs: ClassVar[tuple[str, ...]] = ()
    after: ClassVar[tuple[str, ...]] = ()
    every_point: ClassVar[bool] = False
    explain: ClassVar[Explanation]

    @abstractmethod
    def run(self, view: RunView) -> Iterable[Finding]:
        """Findings about this run, refuted and abstained ones included.

        Never changes its input and never raises to report.
        """

    def parameters(self) -> dict[str, Any]:
        """The thresholds in force, by name."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}  # type: ignore[arg-type]  # subclasses are dataclasses


@cache
def pass_types() -> Mapping[str, type[Pass]]:
    """All passes by code, in the order they run (each after those it names in ``after``)."""
    import afterrun.analyzer.passes as folder  # noqa: PLC0415  # the walk starts here, not at import

    found: dict[str, type[Pass]] = {}
    for info in pkgutil.walk_packages(folder.__path__, folder.__name__ + "."):
        module = importlib.import_module(info.name)
        for _, cls in inspect.getmembers(module, inspect.isclass):
            if issubclass(cls, Pass) and not inspect.isabstract(cls) and cls.__module__ == module.__name__:
                if cls.code in found:
                    raise TypeError(f"two passes are named {cls.code!r}: {found[cls.code]!r} and {cls!r}")
                found[cls.code] = cls
    # lists, for a set of names has another order in every process
    graph = {code: sorted(a for a in found[code].after if a in found) for code in sorted(found)}
    return {code: found[code] for code in TopologicalSorter(graph).static_order()}


def build(settings: Mapping[str, Mapping[str, Any]] | None = None) -> list[Pass]:
    """All passes in order, with thresholds replaced from ``settings[code][field]``.

    Raises ``UsageError`` naming the nearest known code or field, or a value of the wrong type.
    """
    types = pass_types()
    settings = settings or {}
    for code in settings:
        if code not in types:
            raise UsageError(f"no pass is named {code!r}{_nearest(code, types)}")
    return [_one(cls, settings.get(code, {})) for code, cls in types.items()]


def _one(cls: type[Pass], values: Mapping[str, Any]) -> Pass:
    known = {f.name: f for f in dataclasses.fields(cls)}  # type: ignore[arg-type]  # subclasses are dataclasses
    changed: dict[str, Any] = {}
    for name, value in values.items():
        if name not in known:
            raise UsageError(f"{cls.code} has no threshold {name!r}{_nearest(name, known)}")
        want = type(known[name].default)
        try:
            changed[name] = msgspec.convert(value, want, strict=False)
        except msgspec.ValidationError as error:
            raise UsageError(f"{cls.code}.{name}: {value!r} is not a {want.__name__} ({error})") from error
        _check_number(f"{cls.code}.{name}", changed[name])
    return cls(**changed)


def _check_number(name: str, value: object) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise UsageError(f"{name}: {value!r} is not a finite number")
    if isinstance(value, int) and value < 0:
        raise UsageError(f"{name}: {value!r} is negative; it is a count")


def _nearest(word: str, known: Iterable[str]) -> str:
    import difflib  # noqa: PLC0415  # only on the way to an error

    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(sorted(known))}"

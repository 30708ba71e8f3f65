"""Names of output files: inside the folder, portable, and never two alike."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afterrun.plots.filenames import safe_names

HOSTILE = (
    "<b>run&1",
    "'; DROP TABLE runs;--",
    "../../../../tmp/PWNED",
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '=HYPERLINK("http://x","y")',
    "[red]x[/red]",
    'a/b:c*?"<>|',
    "con",
    "x" * 300,
    "{{7*7}}",
    "\u202egpj.exe",
    "\u8bad\u7ec3/\u635f\u5931",
)
"""A run folder and twelve tags made to break reports."""

DEVICES = {"con", "prn", "aux", "nul", *(f"com{i}" for i in range(10)), *(f"lpt{i}" for i in range(10))}


def safe_name(name: str) -> str:
    return safe_names([name])[name]


awkward = st.text(st.sampled_from("aAbB.-_ /\\:*?<>|\0\n~$%ée\u0301训\ud800\u202e"), max_size=30)
names = st.lists(
    st.one_of(st.text(max_size=200), awkward, st.sampled_from([*HOSTILE, *DEVICES])), max_size=12
)


def check(made: dict[str, str]) -> None:
    for name in made.values():
        assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]*", name), name
        assert len(name.encode()) <= 120
        assert not name.endswith(".")
        assert name.partition(".")[0].lower() not in DEVICES
        assert Path("/out", name).resolve().parent == Path("/out")
    assert len({n.casefold() for n in made.values()}) == len(made)


@given(names)
@settings(max_examples=400)
def test_any_names_are_safe_and_apart(given_names: list[str]) -> None:
    check(safe_names(given_names))


@given(names)
@settings(max_examples=100)
def test_the_order_of_names_does_not_matter(given_names: list[str]) -> None:
    assert safe_names(given_names) == safe_names(reversed(given_names))


def test_hostile_names_are_all_safe() -> None:
    made = safe_names(HOSTILE)
    check(made)
    assert made["con"].startswith("_con-")
    assert made["../../../../tmp/PWNED"].startswith("tmp-PWNED-")


@pytest.mark.parametrize("name", ["resnet50", "v1.2_lr-3e-4", "A" * 120, "_con"])
def test_a_safe_name_stays(name: str) -> None:
    assert safe_name(name) == name


def test_a_changed_name_carries_its_own_hash() -> None:
    digest = hashlib.sha256(b"a b").hexdigest()[:8]
    assert safe_name("a b") == f"a-b-{digest}"


def test_names_that_differ_by_case_only_do_not_share_a_file() -> None:
    made = safe_names(["Run", "run", "other"])
    assert made["other"] == "other"
    assert made["Run"].casefold() != made["run"].casefold()


def test_a_name_that_imitates_the_hash_of_another_is_told_apart() -> None:
    check(safe_names(["a b", safe_name("a b")]))

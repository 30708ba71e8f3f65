"""The YAML that programs write when they dump settings."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from afterrun.loaders.settings.yamlsubset import read_mapping

DUMPED = """\
# a comment
a: 1
b: -2.5
c: 6e-05
d: 1.e-3
e: true
f: null
g: ~
h:
i: plain words  # and a remark
j: 'it''s quoted: yes'
k: "tab\\tand \\u00e9"
l: []
m: {}
n: [1, 2.5, x]
o: {"p": 1}
q: .nan
r: -.inf
s: 2024-01-01
t: a#b
u: http://host/x
'v w': 1
"1": 2
"""


def test_scalars() -> None:
    document = read_mapping(DUMPED)
    assert document.unread == []
    assert math.isnan(document.values.pop("q"))
    assert document.values == {
        "a": 1,
        "b": -2.5,
        "c": 6e-05,
        "d": 1e-3,
        "e": True,
        "f": None,
        "g": None,
        "h": None,
        "i": "plain words",
        "j": "it's quoted: yes",
        "k": "tab\tand é",
        "l": [],
        "m": {},
        "n": [1, 2.5, "x"],
        "o": {"p": 1},
        "r": -math.inf,
        "s": "2024-01-01",
        "t": "a#b",
        "u": "http://host/x",
        "v w": 1,
        "1": 2,
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a:\n  b:\n    c: 1\n  d: 2\ne: 3\n", {"a": {"b": {"c": 1}, "d": 2}, "e": 3}),
        ("a:\n- 1\n- 2\nb: 3\n", {"a": [1, 2], "b": 3}),
        ("a:\n  - 1\n  -\n  - x\n", {"a": [1, None, "x"]}),
        ("a:\n- b: 1\n  c: 2\n- b: 3\n", {"a": [{"b": 1, "c": 2}, {"b": 3}]}),
        ("a:\n- - 1\n  - 2\n- - 3\n", {"a": [[1, 2], [3]]}),
        ("a:\n  b:\n  - 1\n  c: 2\n", {"a": {"b": [1], "c": 2}}),
        ("a: !!python/tuple\n- 1\n- 2\n", {"a": [1, 2]}),
        ("a: &id001\n  b: 1\nc: *id001\n", {"a": {"b": 1}, "c": "*id001"}),
        ("a: long words\n  go on here\nb: 1\n", {"a": "long words go on here", "b": 1}),
        ("a: 'long\n  quoted'\n", {"a": "long quoted"}),
        ("a: |\n  one\n  two\nb: 1\n", {"a": "one\ntwo", "b": 1}),
        ("a: >-\n  one\n  two\n", {"a": "one two"}),
        ("---\na: 1\n\n\nb:\n\n  c: 2\n", {"a": 1, "b": {"c": 2}}),
        ("a: 1\r\nb: 2\r\n", {"a": 1, "b": 2}),
        ("a: 1\na: 2\n", {"a": 2}),
        ("a: 99999999999999999999\n", {"a": 1e20}),
        ("", {}),
    ],
)
def test_shapes(text: str, expected: dict[str, Any]) -> None:
    document = read_mapping(text)
    assert (document.values, document.unread) == (expected, [])


def test_what_is_not_understood_costs_its_top_level_key() -> None:
    document = read_mapping('a: 1\nb:\n  ? x\n  : y\nc: "open\nd: 2\njust words\n')
    assert document.values == {"a": 1, "d": 2}
    assert document.unread == ["b", "c", "just words"]


def test_nesting_without_end_is_given_up() -> None:
    deep = "".join(f"{' ' * i}k:\n" for i in range(3000)) + "after: 1\n"
    assert read_mapping(deep).values == {"after": 1}
    assert read_mapping("a: " + "[" * 5000).values == {"a": "[" * 5000}
    assert read_mapping("a:\n" + "- " * 3000 + "x\nafter: 1\n").values == {"after": 1}


def test_any_text_gives_an_answer() -> None:
    dice = random.Random(5)
    pieces = [
        "a",
        "b:",
        ": ",
        "- ",
        "\n",
        "\n  ",
        "\n    ",
        "'",
        '"',
        "[",
        "{",
        "#",
        "|",
        ">",
        "&x",
        "*x",
        "!t",
        "\t",
        "1",
    ]
    for _ in range(3000):
        read_mapping("".join(dice.choice(pieces) for _ in range(dice.randrange(40))))


def test_long_lines_are_no_trap() -> None:
    blanks = " " * 1_000_000
    assert read_mapping(f"a{blanks}b\n").unread == ["a" + " " * 39]
    assert read_mapping(f"a: b{blanks}c\n").values == {"a": f"b{blanks}c"}
    assert read_mapping("'" * 1_000_001 + "\n").values == {}

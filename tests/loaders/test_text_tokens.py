"""Numbers and skeletons of whole blocks against a plain reading of one line at a time."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from afterrun.loaders.textlog.clean import Block, Damage, clean
from afterrun.loaders.textlog.tokens import NUM, Lines, tokenise

WORD = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"


def plain(line: str) -> tuple[str, list[str]]:
    """Skeleton and numbers of one line, sign by sign, as the documentation of ``tokens`` says."""
    s = f"\n{line}\n\n\n\n"
    inside = number_signs(s)
    out, numbers, i = "", [], 1
    word = (0, 0)  # the last digits of a word
    while i < len(s) - 4:
        end = i
        while inside[end]:
            end += 1
        of_it = end > i and of_a_word(s, inside, i)
        if end == i or of_it or (word[1] == i - 1 and goes_on(s, word, (i, end))):
            word = (i, end) if of_it else word
            end = max(end, i + 1)
            out += s[i:end]
        else:
            out += NUM
            numbers.append(s[i:end].replace(",", ""))
        i = end
    return squeeze(out), numbers


def number_signs(s: str) -> list[bool]:
    digit = [c in "0123456789" for c in s]
    inside = list(digit)
    places = range(1, len(s) - 4)
    for i in places:
        inside[i] |= s[i] == "." and digit[i + 1]
    for i in places:
        if s[i] in "eE" and digit[i - 1]:
            signed = s[i + 1] in "+-" and digit[i + 2]
            inside[i] |= digit[i + 1] or signed
            inside[i + 1] |= signed
    for i in places:
        inside[i] |= s[i] in "+-" and inside[i + 1] and s[i - 1] not in WORD + "0123456789."
    for i in places:
        inside[i] |= s[i] == "," and groups_thousands(s, i)
    return inside


def squeeze(text: str) -> str:
    while "  " in text:
        text = text.replace("  ", " ")
    return text


def groups_thousands(s: str, i: int) -> bool:
    after = s[i + 1 : i + 5]
    before = s[:i][::-1]
    size = len(before) - len(before.lstrip("0123456789"))
    left = before[size]
    three = len(after) == 4 and all(c in "0123456789" for c in after[:3]) and after[3] not in "0123456789"
    return 1 <= size <= 3 and three and left != "." and not (left == ":" and size == 2)


def of_a_word(s: str, inside: list[bool], i: int) -> bool:
    before, further = s[i - 1], s[i - 2] if i > 1 else "\n"
    if before == "T" and further in "0123456789":
        return False
    if before in WORD:
        return True
    return (before in "/@" or (before in "+-" and not inside[i - 1])) and further in WORD


def goes_on(s: str, word: tuple[int, int], part: tuple[int, int]) -> bool:
    """``mAP50-95`` (but not a date), and ``mAP@0.5:0.95`` where it is a key."""
    tie, behind = s[word[1]], s[part[1] :]
    if tie == "-":
        return behind[0] != "-"
    after = behind[1] if behind[0] == " " else behind[0]
    return tie == ":" and s[word[0] - 1] == "@" and after in ":="


def block(lines: list[str]) -> Lines:
    data = ("\n".join(lines) + "\n").encode()
    return tokenise(Block(data, np.arange(1, len(lines) + 1)))


def as_read(found: Lines) -> list[tuple[str, list[float]]]:
    """(skeleton, numbers) of every line, in order."""
    read: dict[int, tuple[str, list[float]]] = {}
    for skeleton, at in found.groups:
        for i in at.tolist():
            read[i] = (skeleton, found.values[found.first[i] : found.first[i + 1]].tolist())
    return [read[i] for i in range(len(read))]


def number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def same(a: list[float], b: list[float]) -> bool:
    return len(a) == len(b) and np.array_equal(a, b, equal_nan=True)


pieces = st.sampled_from(
    [
        *"0123456789", "12", "345", "678", "9012", "3.5", ".25", "1e-05", "2E+3", "1,234", "12,345,678", "-", "+", ".", ",",
        ":", "e", "E", "T", "x", "loss", "lr=", "_", "/", "@", " ", "  ", "ms", "%", "nan", "(", ")", "[", "]", "|", "é", "=",
        "step ", "06:38:26,358", "2024-05-01T10:00:00.5", "v1.2.3", "[3/10]",
    ]
)  # fmt: skip
lines_of_text = st.lists(pieces, max_size=12).map("".join)


@settings(max_examples=400)
@given(st.lists(lines_of_text, min_size=1, max_size=8))
@example(["1,234"])
@example(["5e-", "-.5e+3", "--1", "1.2.3", "e5", "5e5e5"])
@example(["T12", "1T12", "a/3", "1/3", "a-3", "1-3", "mAP@0.5: 1"])
@example(["mAP50-95: 1", "mAP@0.5:0.95: 1", "a@1:0.95", "a@1:0.95 = 3", "a1-2-3", "a1-2-", "a1:2:"])
def test_a_block_reads_as_its_lines_one_by_one(lines: list[str]) -> None:
    for (skeleton, numbers), line in zip(as_read(block(lines)), lines, strict=True):
        want_skeleton, want_numbers = plain(line)
        assert skeleton == want_skeleton.strip(" ")
        assert same(numbers, [number(x) for x in want_numbers])


@settings(max_examples=100)
@given(st.lists(lines_of_text, min_size=2, max_size=6))
def test_lines_do_not_see_each_other(lines: list[str]) -> None:
    together = as_read(block(lines))
    alone = [as_read(block([line]))[0] for line in lines]
    for (skeleton, numbers), (lone_skeleton, lone_numbers) in zip(together, alone, strict=True):
        assert skeleton == lone_skeleton
        assert same(numbers, lone_numbers)


@pytest.mark.parametrize(
    ("line", "skeleton", "numbers"),
    [
        ("iter 10: loss 2.5, time 12.00ms, mfu 3.00%", "iter #: loss #, time #ms, mfu #%", [10, 2.5, 12, 3]),
        ("step    1/19560 | loss     nan (+nanz)", "step #/# | loss nan (+nanz)", [1, 19560]),
        ("Perplexity=8,641 tokens=41,943,040", "Perplexity=# tokens=#", [8641, 41943040]),
        ("06:38:26,358 lr=[1e-3, -2.5E-4]", "#:#:#,# lr=[#, #]", [6, 38, 26, 358, 0.001, -0.00025]),
        ("layer1_norm=0.5 fp16 loss_2: 7", "layer1_norm=# fp16 loss_2: #", [0.5, 7]),
        ("15.2,150.1,9", "#,#,#", [15.2, 150.1, 9]),
        ("1,2345 12345,678", "#,# #,#", [1, 2345, 12345, 678]),
    ],
)
def test_examples(line: str, skeleton: str, numbers: list[float]) -> None:
    ((found, values),) = as_read(block([line]))
    assert found.replace(NUM, "#") == skeleton
    assert values == numbers


def test_digits_that_make_no_number_are_not_a_number() -> None:
    ((skeleton, values),) = as_read(block(["at 1.2.3 loss 0.5"]))
    assert skeleton.count(NUM) == 2
    assert math.isnan(values[0])
    assert values[1] == 0.5


def test_numbers_too_large_are_infinite() -> None:
    ((_, values),) = as_read(block(["loss 1e999 -1e999 12345678901234567890123"]))
    assert values == [math.inf, -math.inf, 12345678901234567890123.0]


# -- cleaning ----------------------------------------------------------------------------------------


def cleaned(data: bytes, first_line: int = 1) -> tuple[list[str], list[int], Damage]:
    damage = Damage()
    found = clean(data, first_line, damage)
    return found.data.decode().split("\n")[:-1], found.numbers.tolist(), damage


def test_returns_and_backspaces_end_lines_and_line_feeds_count_them() -> None:
    text, numbers, _ = cleaned(b"a\r\nb\rc\x08\x08\x08d\r\r\ne", first_line=7)
    assert text == ["a", "b", "c", "d", "e"]
    assert numbers == [7, 8, 8, 8, 9]


def test_colours_and_cursor_codes_are_dropped() -> None:
    text, _, _ = cleaned(b"\x1b[1m10\x1b[0m \x1b[38;5;15mloss\x1b[39m \x1b]0;title\x07x\x1b[2K\n")
    assert text == ["10 loss x"]


def test_control_characters_are_blanks() -> None:
    assert cleaned(b"a\tb\x01c\x7fd\n")[0] == ["a b c d"]


def test_lines_with_zero_bytes_are_given_up_and_counted() -> None:
    text, numbers, damage = cleaned(b"loss 1\nloss 2.\0\0\nloss 3\n\0\0\0\n")
    assert text == ["loss 1", "", "loss 3", ""]
    assert numbers == [1, 2, 3, 4]
    assert damage.lines == 1
    assert list(damage.notes()) == ["lines overwritten with zero bytes left out: line 2"]


def test_bytes_that_are_not_utf8_are_latin1() -> None:
    text, _, damage = cleaned(b"co\xfbt: 0.5\n")
    assert text == ["coût: 0.5"]
    assert damage.latin1

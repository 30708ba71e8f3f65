from __future__ import annotations

from pathlib import Path

import pytest

from afterrun.loaders.errors import UsageError
from afterrun.settings import Settings, figure_limit, given_pairs, load, name_overrides, now_ns


def test_defaults(tmp_path: Path) -> None:
    assert load(None, {}, cwd=tmp_path, env={}) == Settings()


def test_file_then_environment_then_flags(tmp_path: Path) -> None:
    (tmp_path / "afterrun.toml").write_text(
        'figures = "3"\nfail_on = "critical"\ngroup = "folder"\n[metrics]\n"a/b" = "loss:val"\n'
    )
    env = {"AFTERRUN_FAIL_ON": "warning", "AFTERRUN_GROUP": "file", "HOME": "x", "AFTERRUN_CORPUS": "y"}
    s = load(None, {"group": "auto", "metrics": {"c": "loss:train"}, "figures": None}, cwd=tmp_path, env=env)
    assert (s.figures, s.fail_on, s.group) == ("3", "warning", "auto")
    assert s.metrics == {"a/b": "loss:val", "c": "loss:train"}
    assert name_overrides(s)["a/b"].split == "val"


def test_the_nearest_file_above_is_used(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.afterrun]\nstrict = true\n")
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    assert load(None, {}, cwd=below, env={}).strict is True


def test_a_pyproject_without_our_table_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "afterrun.toml").write_text("strict = true\n")
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "pyproject.toml").write_text("[tool.other]\nx = 1\n")
    assert load(None, {}, cwd=tmp_path / "a", env={}).strict is True


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("figurs = 3\n", "did you mean 'figures'"),
        ('figures = "many"\n', "a number, all or none"),
        ('formats = ["gif"]\n', "gif"),
        ('group = "tree"\n', "auto, folder or file"),
        ("[passes]\noverfit = 3\n", "configuration"),
        ("not toml", "TOML"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, text: str, word: str) -> None:
    (tmp_path / "afterrun.toml").write_text(text)
    with pytest.raises(UsageError, match=word):
        load(None, {}, cwd=tmp_path, env={})


def test_an_unknown_variable_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"AFTERRUN_FIGURS.*did you mean 'figures'"):
        load(None, {}, cwd=tmp_path, env={"AFTERRUN_FIGURS": "3"})


def test_parsed_values() -> None:
    assert given_pairs(Settings(pairs=["a=b"])) == [("a", "b")]
    assert figure_limit(Settings(figures="all")) is None
    assert figure_limit(Settings(figures="none")) == 0
    assert figure_limit(Settings(figures="7")) == 7
    assert now_ns(Settings()) is None
    assert now_ns(Settings(now="1970-01-01T00:00:01Z")) == 10**9
    assert now_ns(Settings(now="1970-01-01T01:00:01+01:00")) == 10**9
    for bad in (Settings(pairs=["a"]), Settings(pairs=["=b"])):
        with pytest.raises(UsageError):
            given_pairs(bad)
    with pytest.raises(UsageError):
        now_ns(Settings(now="yesterday"))

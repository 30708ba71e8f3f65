"""The page in a real browser: does the script run, is the policy kept, is anything of the logs obeyed?"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from afterrun.plots.report import write_report
from tests.plots.test_report_html import Tree, example, hostile
from tests.support.reports import alarm, draw, learning, make_analysis, png

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="needs chromium"),
]

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-logging=stderr",
    "--virtual-time-budget=5000",
    "--dump-dom",
)


def browse(page: Path, profile: Path, fragment: str = "", *flags: str) -> tuple[Tree, str]:
    """The document after its script ran, and what the browser logged about it."""
    assert CHROMIUM is not None
    done = subprocess.run(
        [CHROMIUM, *FLAGS, *flags, f"--user-data-dir={profile}", page.as_uri() + fragment],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return Tree(re.sub(r"<!--.*?-->", "", done.stdout, flags=re.DOTALL)), "\n".join(console)


def test_the_script_runs_under_its_policy(tmp_path: Path) -> None:
    out = tmp_path / "out"
    write_report(
        example(), [draw(out, "bad", "curves", ("overfit",), png(40, 20))], out, version="0", command="x"
    )
    tree, console = browse(out / "index.html", tmp_path / "profile")
    (body,) = tree.all("body")
    assert body["data-ready"] == "true"
    assert "js" in tree.all("html")[0]["class"].split()
    assert tree.text["title"] == ["Post-mortem of 2 runs"]
    rows = [a["data-rank"] for a in tree.all("tr") if "data-rank" in a]
    assert rows == ["0", "1"]
    assert console == ""


def test_a_link_opens_the_run_it_leads_to(tmp_path: Path) -> None:
    write_report(example(), [], tmp_path / "out", version="0", command="x")
    text = (tmp_path / "out" / "index.html").read_text()
    (tmp_path / "out" / "index.html").write_text(text.replace(" open>", ">"))
    (anchor,) = re.findall(r'<li id="(run-bad-[0-9a-f]+-overfit-1)">', text)
    tree, _ = browse(tmp_path / "out" / "index.html", tmp_path / "profile", f"#{anchor}")
    opened = [a["class"] for a in tree.all("details") if "open" in a]
    assert opened == ["run faulty", "why"]


def test_the_browser_would_say_so_if_the_policy_were_broken(tmp_path: Path) -> None:
    write_report(example(), [], tmp_path / "out", version="0", command="x")
    text = (tmp_path / "out" / "index.html").read_text()
    (tmp_path / "out" / "index.html").write_text(
        text.replace("<h1>", "<h1 onclick='x()' style='color: red'>")
    )
    _, console = browse(tmp_path / "out" / "index.html", tmp_path / "profile")
    assert "Content Security Policy" in console


def test_the_table_sorts_and_filters(tmp_path: Path) -> None:
    """A script of the test presses the buttons, on a copy of the page without its policy."""
    parts = [learning(name, i, n=20 * i, outcome="finished") for i, name in enumerate("abc", 2)]
    found = [alarm("b", wasted_gpu_s=5.0), alarm("c", wasted_gpu_s=7.0)]
    write_report(make_analysis(parts, found), [], tmp_path / "out", version="0", command="x")
    text = (tmp_path / "out" / "index.html").read_text()
    text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text)

    def after(script: str) -> list[tuple[str, bool]]:
        path = tmp_path / "out" / "driven.html"
        path.write_text(text.replace("</body>", f"<script>{script}</script></body>"))
        tree, _ = browse(path, tmp_path / "profile")
        names = [a["data-v"] for a in tree.all("th") if "data-v" in a]
        hidden = ["hidden" in a for a in tree.all("tr") if "data-rank" in a]
        return list(zip(names, hidden, strict=True))

    press = "const press = (name) => [...document.querySelectorAll('th button')].find((b) => b.textContent === name).click();"
    type_in = "const box = document.getElementById('filter'); const type = (t) => { box.value = t; box.dispatchEvent(new Event('input')); };"
    assert after("") == [("c", False), ("b", False), ("a", False)]
    assert after(press + "press('Steps')") == [("a", False), ("b", False), ("c", False)]
    assert after(press + "press('Steps'); press('Steps')") == [("c", False), ("b", False), ("a", False)]
    assert after(press + "press('Lost'); press('Lost')") == [("b", False), ("c", False), ("a", False)]
    assert after(type_in + "type('OVERFIT b')") == [("c", True), ("b", False), ("a", True)]
    assert after(type_in + "type('overfit b'); type('')") == [("c", False), ("b", False), ("a", False)]


def test_b79_nothing_from_the_logs_is_obeyed(tmp_path: Path) -> None:
    out = tmp_path / "out"
    write_report(hostile(), [], out, version="0", command="<script>alert(1)</script>")
    tree, console = browse(out / "index.html", tmp_path / "profile")
    assert tree.text["title"] == ["Post-mortem of 13 runs"]
    assert tree.all("body")[0]["data-ready"] == "true"
    assert len(tree.all("script")) == 1
    assert tree.all("img") == []
    assert console == ""

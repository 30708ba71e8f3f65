"""One sentence a run and one for all of them."""

from __future__ import annotations

import numpy as np

from afterrun.analyzer.finding import Finding, Where
from afterrun.analyzer.view import RunView
from afterrun.plots.report.lines import lines
from afterrun.plots.report.story import headline, most_important, order_runs, state, verdict
from tests.support.reports import alarm, blind, fine, learning, make_analysis, sources_of
from tests.support.tables import make_tables, make_view

DECISIVE = ("non-finite", "divergence", "overfit")


def checked(run: str, *but: str) -> list[Finding]:
    return [fine(run, code) for code in DECISIVE if code not in but]


def view(outcome: str = "finished") -> RunView:
    return make_view({"loss": (range(3), [3.0, 2.0, 1.0])}, run="r", outcome=outcome)


def test_a_fault_is_told_by_its_title_and_the_other_codes() -> None:
    found = [
        alarm("r", title="val/loss rose 18 %.", wasted_gpu_s=9.0),
        alarm("r", "noisy", title="x", wasted_gpu_s=1.0),
        alarm("r", "noisy", title="y", wasted_gpu_s=None),
        *checked("r", "overfit"),
    ]
    assert verdict(view(), found) == "overfit: val/loss rose 18 %; also noisy"


def test_the_worst_is_told_first_whatever_the_order() -> None:
    found = [
        alarm("r", "noisy", severity="warning", wasted_gpu_s=1e9),
        alarm("r", "divergence", severity="critical", title="went up", wasted_gpu_s=None),
    ]
    assert verdict(view(), found).startswith("divergence: went up")
    assert verdict(view(), found) == verdict(view(), found[::-1])


def test_among_equals_the_decisive_codes_lead() -> None:
    found = [
        alarm("r", code, wasted_gpu_s=None, title="t")
        for code in ("incomplete", "noisy", "overfit", "non-finite")
    ]
    assert verdict(view(), found) == "non-finite: t; also overfit, incomplete, noisy"


def test_doubt_is_said() -> None:
    assert verdict(view(), [alarm("r", status="possible", title="rose")]) == "possible overfit: rose"


def test_many_codes_are_counted_not_listed() -> None:
    found = [
        alarm("r", code, wasted_gpu_s=cost, title="t")
        for code, cost in zip("abcdef", range(9, 3, -1), strict=True)
    ]
    assert verdict(view(), found) == "a: t; also b, c, d and 2 more"


def test_healthy_needs_the_decisive_checks() -> None:
    assert verdict(view(), checked("r")) == "healthy"
    assert verdict(view("running"), checked("r")) == "healthy, its end is not recorded"
    improving = Finding(code="still-improving", status="confirmed", severity="info", run="r", title="t")
    assert verdict(view(), [*checked("r"), improving]) == "healthy, still improving at the end"
    missing = blind(
        "r",
        "overfit",
        "a validation loss: --map 'dev/xent=loss:val'",
        title="Overfitting: no validation metric.",
    )
    found = [*checked("r", "overfit"), missing]
    assert verdict(view(), found) == (
        "no fault in 2 checks; overfit not assessable: no validation metric (--map 'dev/xent=loss:val')"
    )
    assert state(view(), found) == "partly"


def test_nothing_seen_is_not_healthy() -> None:
    assert verdict(view(), []) == "not assessable: no check ran"
    assert verdict(view(), [blind("r", "overfit", title="Overfitting: no loss")]) == "not assessable: no loss"
    empty = make_view({"loss": ([], [])}, run="r")
    assert verdict(empty, []) == "not assessable: no metric was recorded"


def test_a_look_at_the_record_alone_is_no_look_at_the_run() -> None:
    empty = make_view({"loss": ([], [])}, run="r")
    record = [fine("r", "log-bloat"), fine("r", "perturbed"), blind("r", "overfit")]
    assert state(empty, record) == "unassessed"
    assert verdict(empty, record) == "not assessable: no metric was recorded"
    assert state(empty, [*record, fine("r", "gpu-idle")]) == "partly"


def test_a_bad_end_is_never_healthy() -> None:
    for outcome, words in {"killed": "was killed", "oom": "ran out of memory", "crashed": "crashed"}.items():
        assert state(view(outcome), checked("r")) == "faulty"
        assert verdict(view(outcome), checked("r")) == f"{words}; healthy"
        assert verdict(view(outcome), []) == f"{words}; not assessable"


def test_a_bad_end_follows_the_worst_finding_unless_a_finding_tells_it() -> None:
    assert verdict(view("killed"), [alarm("r", title="rose")]) == "overfit: rose; was killed"
    assert verdict(view("killed"), [alarm("r", "incomplete", title="ends early")]) == "incomplete: ends early"


def test_files_not_read_whole_are_said() -> None:
    tables = sources_of(learning("r"), path=["a", "b", "c"], status=["partial", "read", "unreadable"])
    damaged = RunView(name="r", tables=tables)
    assert verdict(damaged, checked("r")) == "healthy (2 of 3 files not read whole)"


def test_runs_stand_worst_first() -> None:
    parts = [learning(n) for n in ("fine", "dear", "cheap", "blind", "critical", "maybe")]
    found = [
        *checked("fine"),
        alarm("dear", wasted_gpu_s=9.0),
        alarm("cheap", wasted_gpu_s=1.0),
        alarm("critical", "divergence", severity="critical", wasted_gpu_s=None),
        alarm("maybe", status="possible", severity="critical"),
    ]
    analysis = make_analysis(parts, found)
    assert order_runs(analysis) == ["critical", "dear", "cheap", "maybe", "blind", "fine"]


def test_information_is_no_alarm() -> None:
    note = Finding(
        code="still-improving",
        status="confirmed",
        severity="info",
        run="r",
        title="t",
        where=Where(step_start=1),
    )
    analysis = make_analysis([learning("r")], [note, *checked("r")])
    assert most_important(analysis, 3) == []
    assert state(analysis.views["r"], analysis.findings) == "healthy"


def test_most_important_tells_each_run_and_code_before_more_of_the_same() -> None:
    parts = [learning(n) for n in ("a", "b", "c")]
    found = [
        alarm("a", "overfit", wasted_gpu_s=90.0, where=Where(step_start=1)),
        alarm("a", "overfit", wasted_gpu_s=80.0, where=Where(step_start=2)),
        alarm("a", "spike", wasted_gpu_s=70.0),
        alarm("b", "overfit", wasted_gpu_s=60.0),
        alarm("c", "noisy", wasted_gpu_s=5.0),
        alarm("c", "divergence", status="possible", severity="critical"),
    ]
    chosen = most_important(make_analysis(parts, found), 9)
    assert [(f.run, f.code) for f in chosen] == [
        ("a", "overfit"),
        ("c", "noisy"),
        ("a", "spike"),
        ("b", "overfit"),
        ("c", "divergence"),
    ]
    assert chosen[0].wasted_gpu_s == 90.0


def test_headlines() -> None:
    assert headline(make_analysis([])) == "No run was found."
    assert headline(make_analysis([learning("r")], checked("r"))) == "r: healthy."
    two = [learning("a"), learning("b")]
    assert headline(make_analysis(two, [*checked("a"), *checked("b")])) == "All 2 runs are healthy."
    assert (
        headline(make_analysis(two, checked("a")))
        == "Of 2 runs 1 is healthy, 1 could not be checked in full."
    )
    assert headline(make_analysis(two, [])) == (
        "No fault was found in 2 runs, but none of them could be checked in full."
    )


def test_headline_counts_runs_and_sums_the_dearest_finding_of_each() -> None:
    parts = [learning(n) for n in ("a", "b", "c", "d")]
    found = [
        alarm("a", wasted_gpu_s=3_600.0 * 10),
        alarm("a", "noisy", wasted_gpu_s=3_600.0 * 4),
        alarm("b", wasted_gpu_s=3_600.0 * 5),
        alarm("c", "spike", wasted_gpu_s=None),
        *checked("d"),
    ]
    assert headline(make_analysis(parts, found)) == (
        "Something went wrong in 3 of 4 runs: overfit in 2, spike in 1; at least 15 GPU-h lost. 1 is healthy."
    )


def test_headline_names_kinds_once_each() -> None:
    names = [f"r{i}" for i in range(6)]
    found = [alarm(n, code, wasted_gpu_s=None) for n, code in zip(names, "abcdef", strict=True)]
    analysis = make_analysis([learning(n) for n in names], found)
    assert headline(analysis) == "Something went wrong in all 6 runs: a, b, c, d and 2 more."


def test_healthy_runs_that_are_alike_share_a_line() -> None:
    parts = [
        make_tables({"loss": (range(2), [2.0, last])}, run=f"bert-seed{i}", outcome="finished")
        for i, last in enumerate((1.0, 2.0, 3.0), 1)
    ]
    parts.append(make_tables({"loss": (range(2), [2.0, 1.0])}, run="other"))
    found = [f for p in parts for f in checked(p.run_names()[0])] + [
        alarm("other", title="rose", wasted_gpu_s=4.0)
    ]
    told = lines(make_analysis(parts, found))
    assert [(line.label, line.text, line.wasted_gpu_s) for line in told] == [
        ("other", "overfit: rose", 4.0),
        ("bert-seed{1..3}", "healthy (3 runs, loss 2 ± 1)", None),
    ]
    assert told[1].runs == ("bert-seed1", "bert-seed2", "bert-seed3")


def test_labels_of_groups_tell_gaps() -> None:
    def label(*names: str) -> str:
        parts = [learning(n, n=4) for n in names]
        return lines(make_analysis(parts, [f for n in names for f in checked(n)]))[0].label

    assert label("s1", "s2", "s10") == "s{1,2,10}"
    assert label("a1-x1", "a2-x2") == "a1-x1 … a2-x2"
    assert label("s01", "s02", "s03") == "s{01..03}"


def test_nan_at_the_end_does_not_hide_in_the_spread() -> None:
    parts = [make_tables({"loss": (range(2), [2.0, np.nan])}, run=f"s{i}") for i in (1, 2)]
    found = [f for i in (1, 2) for f in checked(f"s{i}")]
    (line,) = lines(make_analysis(parts, found))
    assert line.text == "healthy (2 runs)"

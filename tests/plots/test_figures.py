"""Each figure twice: what is prepared, as a frame with values checkable by hand, and what is drawn."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afterrun.plots.content.compose import short_path
from afterrun.plots.registry import Figure, Prepared, Skip, figures
from afterrun.plots.spec import FRAME
from afterrun.plots.theme import SCREEN, paper
from tests.support.figures import finding, loss_view, overlaps, texts
from tests.support.tables import make_view

CURVES, GAP, LR_LOSS, NOISE = (figures()[name] for name in ("curves", "gap", "lr-loss", "noise"))

SIX = (
    finding("overfit", 220, 400, val_tag="val/loss"),
    finding("plateau", 250, 330, cause="lr_too_high", tag="train/loss"),
    finding("spike", 90, 300, spikes=[90, 200, 300], tag="train/loss"),
    finding("divergence", 340, 400, severity="critical", tag="train/loss"),
    finding("restart", 210, severity="info"),
    finding("still-improving", 320, 400, severity="info", status="possible"),
)


def prepared(figure: Figure, view: object, *found: object) -> Prepared:
    made = figure.prepare(view, found)  # type: ignore[arg-type]
    assert isinstance(made, Prepared), made
    assert made.frame.schema == FRAME
    return made


def layer(made: Prepared, name: str, panel: str = "main") -> pl.DataFrame:
    return made.frame.filter((pl.col("layer") == name) & (pl.col("panel") == panel))


def axes_of(drawn: object) -> dict[str, object]:
    return {str(ax.get_gid()): ax for ax in drawn.axes}  # type: ignore[attr-defined]


# what is prepared


def test_a_short_curve_is_drawn_as_it_is() -> None:
    made = prepared(CURVES, make_view({"loss": ([1, 2, 4], [3.0, 2.0, 1.0])}))
    line = layer(made, "line")
    assert line["x"].to_list() == [1.0, 2.0, 4.0]
    assert line["y"].to_list() == [3.0, 2.0, 1.0]
    assert [k.text for k in made.keys] == ["loss, 3 points"]
    assert made.x.label == "step"
    assert [e.text for e in made.ends] == ["loss\n1.00"]
    assert made.alt == "loss from 3.00 to 1.00 over step 1 to 4, 3 points."


def test_a_long_curve_has_all_points_their_ewma_and_the_band_of_one_sigma() -> None:
    view = loss_view()
    lead = view.train_loss
    assert lead is not None
    made = prepared(CURVES, view)
    train = pl.col("name") == "train/loss"
    assert len(layer(made, "raw").filter(train)) == 400
    smooth, band = layer(made, "smooth").filter(train), layer(made, "band")
    assert smooth["y"].to_numpy() == pytest.approx(np.exp(lead.smooth_u))
    assert (band["high"] / smooth["y"]).to_numpy() == pytest.approx(math.exp(lead.sigma))
    assert (smooth["y"] / band["low"]).to_numpy() == pytest.approx(math.exp(lead.sigma))
    assert len(layer(made, "line").filter(pl.col("name") == "val/loss")) == 20


@pytest.mark.parametrize(("top", "log"), [(9.0, False), (11.0, True)])
def test_the_vertical_axis_is_log_beyond_a_factor_of_ten(top: float, log: bool) -> None:
    made = prepared(CURVES, make_view({"loss": ([1, 2], [1.0, top])}))
    assert made.panels[0].log is log
    assert made.panels[0].y_label == ("loss (log scale)" if log else "loss")


def test_a_share_is_never_log() -> None:
    made = prepared(CURVES, make_view({"val/accuracy": ([1, 2, 3], [0.01, 0.5, 0.9])}))
    assert made.panels[0].log is False


def test_what_is_not_finite_has_lanes_of_its_own() -> None:
    y = [1.0, math.nan, math.nan, 2.0, math.inf, 3.0, math.nan]
    made = prepared(CURVES, make_view({"train/loss": (range(0, 70, 10), y)}))
    lanes = layer(made, "lane").select("name", "x", "x_end").rows()
    assert lanes == [("NaN train", 10.0, 20.0), ("NaN train", 60.0, 60.0), ("∞ train", 40.0, 40.0)]
    assert made.ends[0].text == "train\n3.00, then NaN"


def test_what_a_restart_replaced_is_drawn_apart() -> None:
    view = make_view(
        {"loss": ([1, 2, 3, 4, 3, 4, 5], [5.0, 4.0, 3.0, 2.9, 3.1, 2.8, 2.5])},
        attempt={"loss": [1, 1, 1, 1, 2, 2, 2]},
        superseded={"loss": [False, False, True, True, False, False, False]},
    )
    made = prepared(CURVES, view)
    assert layer(made, "superseded").select("x", "y").rows() == [(3.0, 3.0), (4.0, 2.9)]
    assert layer(made, "shade").select("x", "x_end").rows() == [(3.0, 4.0)]
    assert layer(made, "line")["y"].to_list() == [5.0, 4.0, 3.1, 2.8, 2.5]
    assert made.keys[-1].text == "2 points done again"


def test_a_replaced_attempt_that_came_further_is_in_sight() -> None:
    view = make_view(
        {"loss": ([1, 2, 30, 1, 2], [5.0, 4.0, 3.0, 5.0, 4.5])},
        attempt={"loss": [1, 1, 1, 2, 2]},
        superseded={"loss": [True, True, True, False, False]},
    )
    made = prepared(CURVES, view)
    assert made.x.high > 30
    assert layer(made, "superseded")["x"].to_list() == [1.0, 2.0, 30.0]
    assert layer(made, "shade").is_empty()  # it would be all of the panel


def test_curves_without_steps_lie_on_their_epochs() -> None:
    view = make_view(
        {"train/loss": (range(6), [6.0, 5.0, 4.0, 3.0, 2.0, 1.0]), "val/loss": (range(2), [4.0, 2.0])}
    )
    epochs = pl.Series([0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 1.0, 2.0])
    metrics = view.tables.metrics.with_columns(epoch=epochs, step=pl.lit(None, pl.Int64))
    made = prepared(CURVES, replace(view, tables=replace(view.tables, metrics=metrics)))
    assert made.x.label == "epoch"
    assert layer(made, "line").filter(pl.col("name") == "train/loss")["x"].to_list() == epochs[:6].to_list()
    assert layer(made, "line").filter(pl.col("name") == "val/loss")["x"].to_list() == [1.0, 2.0]


def test_curves_without_steps_and_epochs_lie_in_write_order() -> None:
    view = make_view({"loss": ([7, 8, 9], [3.0, 2.0, 1.0])})
    metrics = view.tables.metrics.with_columns(step=pl.lit(None, pl.Int64))
    made = prepared(CURVES, replace(view, tables=replace(view.tables, metrics=metrics)), finding("restart"))
    assert made.x.label == "write order"
    assert layer(made, "line")["x"].to_list() == [0.0, 1.0, 2.0]
    assert made.marks[0].shape == "note"


def test_evaluations_repeated_on_every_row_are_drawn_once() -> None:
    step = np.arange(1, 41)
    val = np.repeat(np.arange(8.0, 0.0, -1.0), 5)
    made = prepared(CURVES, make_view({"train/loss": (step, 10.0 / step), "val/loss": (step, val)}))
    assert layer(made, "line").filter(pl.col("name") == "val/loss")["y"].to_list() == [8, 7, 6, 5, 4, 3, 2, 1]


def test_curves_that_count_different_things_meet_on_the_wall_clock_or_not_at_all() -> None:
    batches, epochs = np.arange(1000), np.arange(1, 11)
    curves = {"train/loss": (batches, 2.0 - batches / 1000), "val/loss": (epochs, 2.0 - epochs / 10)}
    apart = prepared(CURVES, make_view(curves))
    assert apart.x.label == "step"
    assert set(apart.frame["name"]) == {"train/loss"}
    assert "val/loss" in apart.note
    wall = {"train/loss": batches * 3.6, "val/loss": epochs * 360.0}
    found = finding("overfit", 5, 10, val_tag="val/loss")
    made = prepared(CURVES, make_view(curves, wall_s=wall), found)
    assert made.x.label == "hours since start"
    assert layer(made, "line").filter(pl.col("name") == "val/loss")["x"].to_list() == pytest.approx(
        epochs / 10
    )
    assert made.marks[0].xs == pytest.approx((0.5,))


def test_only_what_was_found_is_marked_and_each_in_its_shape() -> None:
    refuted = finding("overfit", 50, status="refuted")
    lost = finding("noisy", status="abstained")
    made = prepared(CURVES, loss_view(), *SIX, refuted, lost)
    assert [(m.code, m.shape, m.text) for m in made.marks] == [
        ("divergence", "flag", "diverges from 340"),
        ("overfit", "flag", "overfits from 220"),
        ("plateau", "span", "plateau, lr too high"),
        ("spike", "points", "3 spikes"),
        ("restart", "flag", "restart at 210"),
        ("still-improving", "span", "still improving (possible)"),
    ]
    assert made.marks[3].xs == (90.0, 200.0, 300.0)
    assert [m.role for m in made.marks] == ["accent"] * 4 + ["quiet"] * 2
    assert made.codes == ("divergence", "overfit", "plateau", "spike", "restart", "still-improving")
    assert len(layer(made, "peak")) == 3


def test_a_peak_is_ringed_where_it_is_highest() -> None:
    y = np.ones(300)
    y[100:104] = (2.0, 5.0, 3.0, 1.5)
    made = prepared(CURVES, make_view({"loss": (range(300), y)}), finding("spike", 100, spikes=[100]))
    assert layer(made, "peak").select("x", "y").rows() == [(101.0, 5.0)]
    assert made.marks[0].text == "spike at 100"


def test_the_gap_is_in_percent_of_the_training_mean_since_the_last_evaluation() -> None:
    view = make_view(
        {
            "train/loss": ([1, 2, 3, 4, 5, 6], [4.0, 2.0, 2.0, 2.0, 1.0, 1.0]),
            "val/loss": ([2, 4, 6], [3.0, 2.2, 1.5]),
        }
    )
    made = prepared(GAP, view)
    gap = layer(made, "line", "gap")
    assert gap["x"].to_list() == [2.0, 4.0, 6.0]
    assert gap["y"].to_list() == pytest.approx([0.0, 10.0, 50.0])
    assert layer(made, "best")["x"].to_list() == [6.0]
    assert made.panels[1].y_label == "gap, %"
    assert made.ends[-1].text == "gap\n50.0 %"


def test_the_gap_of_a_share_is_in_percentage_points_and_positive_when_worse() -> None:
    view = make_view({"accuracy": ([1, 2, 3], [0.5, 0.7, 0.9]), "val_accuracy": ([1, 2, 3], [0.5, 0.6, 0.7])})
    made = prepared(GAP, view)
    assert layer(made, "line", "gap")["y"].to_list() == pytest.approx([0.0, 10.0, 20.0])
    assert made.panels[1].y_label == "gap, pp"
    assert made.note.startswith("gap: training minus validation")


def test_the_gap_shows_the_interval_of_the_onset_and_where_patience_stops() -> None:
    table = [
        {"patience": 5, "min_delta_pct": 1.0, "stop_step": 9},
        {"patience": 5, "min_delta_pct": 0.0, "stop_step": 320},
    ]
    found = finding("overfit", 220, onset_low_step=200, onset_high_step=240, patience_table=table)
    made = prepared(GAP, loss_view(), found)
    assert layer(made, "shade").select("x", "x_end").rows() == [(200.0, 240.0)]
    assert [m.text for m in made.marks] == ["overfits from 220", "patience 5 stops at 320"]
    assert made.codes == ("overfit",)


@pytest.mark.parametrize(
    ("lr", "log"),
    [
        (np.linspace(1e-3, 0.0, 100), False),  # linear decay to zero: wide only at its very end
        (1e-3 * 0.1 ** (np.arange(100) // 34), True),  # two steps of a factor of ten
        (np.full(100, 1e-3), False),
        (np.zeros(100), False),
    ],
)
def test_the_learning_rate_is_log_where_its_level_spans_a_factor_of_ten(lr: np.ndarray, log: bool) -> None:
    step = np.arange(100)
    made = prepared(LR_LOSS, make_view({"loss": (step, 2.0 - step / 100), "lr": (step, lr)}))
    assert made.panels[1].log is log
    assert layer(made, "smooth", "lr")["y"].to_list() == lr.tolist()


def test_a_plateau_is_shaded_over_both_panels() -> None:
    made = prepared(LR_LOSS, loss_view(), finding("plateau", 100, 300, cause="schedule_end"))
    assert made.marks[0].shaded
    drawn = axes_of(LR_LOSS.draw(made, SCREEN))
    for name in ("panel-main", "panel-lr"):
        spans = [p.get_extents() for p in drawn[name].patches]  # type: ignore[attr-defined]
        low, high = drawn[name].transData.transform([(100, 1), (300, 1)])[:, 0]  # type: ignore[attr-defined]
        assert any(b.x0 == pytest.approx(low) and b.x1 == pytest.approx(high) for b in spans)


def test_noise_is_the_error_of_the_ewma_of_the_points_before() -> None:
    view = loss_view(noise=0.2)
    lead = view.train_loss
    assert lead is not None
    made = prepared(NOISE, view, finding("noisy", 1, 400, grade="very noisy"))
    dots = layer(made, "dots", "residual")
    errors = 100 * np.expm1(lead.u[lead.warmup :] - lead.smooth_u[lead.warmup - 1 : -1])
    inside = (errors >= dots["y"].min()) & (errors <= dots["y"].max())
    assert dots["y"].to_numpy()[inside] == pytest.approx(errors[inside])
    bars = layer(made, "bar", "side")
    assert bars["x_end"].sum() == pytest.approx(100.0)
    assert "grade: very noisy" in made.note
    sigma = layer(made, "band", "residual")
    assert sigma["high"].to_list() == pytest.approx([100 * math.expm1(lead.sigma)] * 2)


def test_of_many_points_a_fair_sample_is_shown() -> None:
    """An envelope would leave a hole in the middle."""
    rng = np.random.default_rng(1)
    made = prepared(NOISE, make_view({"loss": (range(20_000), np.exp(0.1 * rng.normal(size=20_000)))}))
    y = layer(made, "dots", "residual")["y"].to_numpy()
    assert len(y) == 3000
    assert np.mean(np.abs(y) < 6.74) == pytest.approx(0.5, abs=0.04)  # half of a normal within 0.674 sigma


@pytest.mark.parametrize(
    ("figure", "curves", "why"),
    [
        (CURVES, {"loss": ([1, 2], [math.nan, math.nan])}, "finite"),
        (CURVES, {"unknown": ([1, 2], [1.0, 2.0])}, "--map"),
        (GAP, {"loss": ([1, 2], [1.0, 2.0])}, "--pair"),
        (GAP, {"train/loss": (range(9), range(1, 10)), "val/loss": ([4, 8], [1.0, 2.0])}, "2 finite values"),
        (LR_LOSS, {"loss": ([1, 2], [1.0, 2.0])}, "learning rate"),
        (NOISE, {"loss": ([1, 2], [1.0, 2.0])}, "too few"),
        (NOISE, {"loss": (range(50), [1.0] * 50)}, "no noise"),
    ],
)
def test_nothing_to_draw_is_said_with_the_reason(figure: Figure, curves: dict, why: str) -> None:  # type: ignore[type-arg]
    made = figure.prepare(make_view(curves), ())
    assert isinstance(made, Skip)
    assert why in made.reason


@pytest.mark.parametrize(
    ("name", "limit", "shown"),
    [
        ("runs/vit/seed1", 24, "runs/vit/seed1"),
        ("experiments/vision/vit-b16/lr-3e-4/seed1", 24, "…/vit-b16/lr-3e-4/seed1"),
        ("a/" + "x" * 40, 24, "x" * 11 + "…" + "x" * 12),
    ],
)
def test_a_long_path_keeps_its_end(name: str, limit: int, shown: str) -> None:
    assert short_path(name, limit) == shown


# what is drawn

EVERY = [
    (figure, theme) for figure in (CURVES, GAP, LR_LOSS, NOISE) for theme in (SCREEN, paper(1), paper(2))
]


@pytest.mark.parametrize(("figure", "theme"), EVERY, ids=lambda x: x.name)
def test_every_panel_has_data_units_and_ticks_and_no_text_touches_another(
    figure: Figure, theme: object
) -> None:
    made = prepared(figure, loss_view(), *SIX, finding("noisy", 1, 400, severity="info"))
    drawn = figure.draw(made, theme)  # type: ignore[arg-type]
    drawn.canvas.draw()
    labels = {t.get_gid() for t in texts(drawn)}
    for name, ax in axes_of(drawn).items():
        assert ax.lines or ax.collections or ax.patches, name  # type: ignore[attr-defined]
    for panel in made.panels:
        assert f"ylabel-{panel.name}" in labels
        assert len(axes_of(drawn)[f"panel-{panel.name}"].get_yticks()) >= 2  # type: ignore[attr-defined]
    assert "step" in {ax.get_xlabel() for ax in drawn.axes}
    assert overlaps(drawn, texts(drawn)) == []
    width, height = drawn.canvas.get_width_height()
    for text in texts(drawn):
        box = text.get_window_extent(drawn.canvas.get_renderer())
        assert box.x0 >= -1, text
        assert box.x1 <= width + 1, text
        assert box.y0 >= -1, text
        assert box.y1 <= height + 1, text


def test_six_findings_each_have_their_words_and_no_two_touch() -> None:
    made = prepared(CURVES, loss_view(), *SIX)
    drawn = CURVES.draw(made, SCREEN)
    words = [t for t in texts(drawn) if str(t.get_gid()).startswith("finding-")]
    assert sorted(t.get_text() for t in words) == sorted(m.text for m in made.marks)
    assert overlaps(drawn, words) == []


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["overfit", "plateau", "lr-dead", "restart", "divergence", "spike"]),
            st.integers(1, 400),
            st.integers(1, 400),
        ),
        max_size=14,
    )
)
@settings(max_examples=25)
def test_however_findings_fall_their_words_never_touch(places: list[tuple[str, int, int]]) -> None:
    made = prepared(CURVES, loss_view(60), *(finding(code, min(a, b), max(a, b)) for code, a, b in places))
    drawn = CURVES.draw(made, SCREEN)
    words = [t for t in texts(drawn) if str(t.get_gid()).startswith("finding-")]
    assert overlaps(drawn, words) == []
    hidden = sum(int(t.get_text().split()[1]) for t in words if t.get_text().startswith("+ "))
    assert hidden + sum(not t.get_text().startswith("+ ") for t in words) == len(made.marks)


def test_a_mark_without_room_is_counted_and_not_drawn() -> None:
    found = [finding("level-shift", 200 + i) for i in range(12)]
    drawn = CURVES.draw(prepared(CURVES, loss_view(), *found), paper(1))
    words = {t.get_text() for t in texts(drawn)}
    (more,) = [w for w in words if w.startswith("+ ")]
    shown = sum(w.startswith("level shift") for w in words)
    assert more == f"+ {12 - shown} more"
    ax = axes_of(drawn)["panel-main"]
    poles = [line for line in ax.lines if len(set(line.get_xdata())) == 1 and len(line.get_xdata()) == 2]  # type: ignore[attr-defined]
    assert len(poles) == shown


def test_hostile_names_are_drawn_as_plain_text() -> None:
    tag = "$\\frac{a}{b}$ <i>\x00\x1b[31m\u202e" + "x" * 300 + "/loss"
    view = make_view({tag: ([1, 2, 3], [3.0, 2.0, 1.0])}, run="$x^2$ \u202e" + "y" * 300)
    made = prepared(CURVES, view)
    drawn = CURVES.draw(made, SCREEN)
    words = [t.get_text() for t in texts(drawn)]
    assert any("$\\frac{a}{b}$ <i>" in w for w in words)
    assert not any(c in w for w in words for c in "\x00\x1b\u202e")
    assert max(len(line) for w in words for line in w.split("\n")) < 90
    assert not any(t.get_parse_math() for t in texts(drawn))
    assert made.frame["name"][0] == tag  # the data keep the raw name


def test_a_tag_that_no_font_can_draw_gets_a_number() -> None:
    made = prepared(CURVES, make_view({"\U0001f9ff" * 9 + "/loss": ([1, 2], [2.0, 1.0])}))
    assert made.keys[0].text == "tag 1, 2 points"


holes = st.sampled_from([math.nan, math.inf, -math.inf])
wide = st.lists(st.floats(-1e150, 1e150) | holes, min_size=1, max_size=90)
plain = st.lists(st.floats(1e-6, 1e9) | st.just(0.0) | holes, min_size=1, max_size=90)
steps = st.tuples(st.integers(-(2**62), 2**61), st.sampled_from([1, 7, 2**50]))


def draw_all(curves: dict[str, object], *found: object) -> None:
    view = make_view(curves)  # type: ignore[arg-type]
    for figure in figures().values():
        made = figure.prepare(view, found)  # type: ignore[arg-type]
        if isinstance(made, Prepared):
            figure.draw(made, SCREEN).canvas.draw()  # type: ignore[attr-defined]


@given(wide, steps)
@settings(max_examples=30)
def test_any_values_can_be_drawn_without_a_warning(values: list[float], at: tuple[int, int]) -> None:
    x = [at[0] + i * at[1] for i in range(len(values))]
    draw_all(
        {"loss": (x, values), "lr": (x, values)}, finding("spike", x[0]), finding("plateau", x[0], x[-1])
    )


@given(plain, plain, steps)
@settings(max_examples=20)
def test_any_pair_can_be_drawn_without_a_warning(
    train: list[float], val: list[float], at: tuple[int, int]
) -> None:
    x = [at[0] + i * at[1] for i in range(90)]
    curves = {"train/loss": (x[: len(train)], train), "val/loss": (x[: len(val)], val)}
    draw_all(curves, finding("overfit", x[0], onset_low_step=x[0], onset_high_step=x[1]))


# the registry


def test_figures_are_named_alike_and_illustrate_known_words() -> None:
    for name, figure in figures().items():
        assert name == figure.name == name.lower()
        assert figure.title
        assert all(code == code.lower() and " " not in code for code in figure.codes)
    assert set(figures()) >= {"curves", "gap", "lr-loss", "noise"}


def test_prepared_values_are_plain() -> None:
    made = prepared(CURVES, loss_view(), *SIX)
    assert json.dumps([made.x, made.panels, made.keys, made.ends, made.marks, dict(made.roles)])

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from afterrun.loaders.collect import LoadOptions, collect
from afterrun.loaders.errors import UsageError
from afterrun.loaders.names import METRICS, Name, canonical, direction, metric_of, parse_map, resolve
from afterrun.loaders.tables.axes import EPOCH_NAMES, STEP_NAMES, TOKEN_NAMES
from afterrun.settings import load, name_overrides
from tests.support.loading import write

CASES = [
    ("train/loss", "loss", "train"),
    ("loss", "loss", "none"),
    ("val_loss", "loss", "val"),
    ("eval_loss", "loss", "val"),
    ("Loss/Valid", "loss", "val"),
    ("loss/train", "loss", "train"),
    ("train_loss_epoch", "loss", "train"),
    ("epoch_loss", "loss", "none"),
    ("validation/main/loss", "loss", "val"),
    ("trainLoss", "loss", "train"),
    ("train_loss_step", "loss", "train"),
    ("lr-AdamW", "lr", "none"),
    ("train/learning_rate", "lr", "train"),
    ("lr/pg1", "lr", "none"),
    ("perf/step_time", "step_time_s", "none"),
    ("perf/data_time", "data_time_s", "none"),
    ("metrics/mAP50(B)", "map50", "none"),
    ("metrics/mAP50-95(B)", "map", "none"),
    ("metrics/mAP_0.5:0.95", "map", "none"),
    ("train/box_loss", "box_loss", "train"),
    ("eval_g0_loss", "g0_loss", "val"),
    ("rollout/ep_rew_mean", "reward", "none"),
    ("train/policy_gradient_loss", "policy_gradient_loss", "train"),
    ("grad_2.0_norm_total", "grad_norm", "none"),
    ("epoch", "epoch", "none"),
    ("time/total_timesteps", "step", "none"),
    ("Accuracy/val_accuracy", "accuracy", "val"),
    ("test_acc", "accuracy", "test"),
    ("discriminator loss agent", "discriminator_agent_loss", "none"),
    ("my_secret_quantity", None, "none"),
    ("", None, "none"),
]


@pytest.mark.parametrize(("tag", "metric", "split"), CASES)
def test_canonical(tag: str, metric: str | None, split: str) -> None:
    name = canonical(tag)
    assert (name.metric, name.split) == (metric, split)


def test_directions() -> None:
    assert direction("loss") == "min"
    assert direction("accuracy") == "max"
    assert direction("box_loss") == "min"
    assert direction("policy_gradient_loss") is None, "falling is not getting better in a game"
    assert direction("overall_f1") == "max"
    assert direction("recall@5") == "max"
    assert direction("agent_accuracy") is None
    assert direction("code_perplexity") is None, "more codes in use are better"
    assert direction("lr") is None
    assert direction("something") is None
    assert direction(None) is None


def test_unsplit_loss_beside_a_validation_loss_is_the_training_one() -> None:
    assert resolve({"loss": 10, "val_loss": 10})["loss"].split == "train"
    assert resolve({"loss": 10})["loss"].split == "none"
    assert resolve({"loss": 10, "val_loss": 10, "accuracy": 10})["accuracy"].split == "none"
    # the one summary value that the HF Trainer writes at the end does not take the place of the curve
    assert resolve({"loss": 30, "train_loss": 1, "eval_loss": 10})["loss"].split == "train"
    assert resolve({"loss": 30, "train_loss": 30, "eval_loss": 10})["loss"].split == "none"


def test_user_mapping_wins() -> None:
    tag, name = parse_map("dev/xent=loss:val:min")
    assert (tag, name) == ("dev/xent", Name("loss", "val", "", "min", "loss"))
    assert resolve({"dev/xent": 3, "q": 3}, {"q": name})["q"] == name
    assert parse_map("a=b=accuracy") == ("a=b", Name("accuracy", "none", "", "max", "quality"))
    assert parse_map("zeta=elbo::max")[1] == Name("elbo", "none", "", "max", "quality")


@pytest.mark.parametrize("text", ["loss", "=loss", "a=", "a=loss:dev", "a=loss:val:up", "a=loss:val:min:x"])
def test_bad_mappings_say_how_to_write_one(text: str) -> None:
    with pytest.raises(UsageError):
        parse_map(text)


def test_the_meaning_given_in_the_configuration_reaches_the_tables(tmp_path: Path) -> None:
    write(tmp_path, "step,loss,zeta,score_b\n" + "".join(f"{i},{1 / i},{2 / i},{i}\n" for i in range(1, 9)))
    write(tmp_path, '[metrics]\nzeta = "loss:val"\nscore_b = "elbo:train:max"\n', "afterrun.toml")
    settings = load(None, {"metrics": {"score_b": "elbo:test:max"}}, cwd=tmp_path, env={})
    overrides = name_overrides(settings)
    collection = collect([tmp_path / "log.csv"], LoadOptions(overrides=overrides))
    named = collection.tables.metrics.select(pl.col("tag", "metric", "split").cast(pl.String)).unique()
    assert {("zeta", "loss", "val"), ("score_b", "elbo", "test")} <= set(named.rows())
    assert overrides["score_b"].better == "max", "the command line goes before the file"


def test_every_part_has_a_name_that_leads_back_to_it() -> None:
    for metric in METRICS:
        for word in metric.parts:
            part = canonical(f"zeta_{word}")
            assert part.metric == f"zeta_{metric.name}"
            assert metric_of(f"zeta_{metric.name}") is not None
            assert (part.kind, part.better) == (metric.kind, metric.better)


@pytest.mark.parametrize("name", [*(n for n in STEP_NAMES if n != "it"), *EPOCH_NAMES, *TOKEN_NAMES])
def test_what_orders_a_table_is_an_axis_by_name(name: str) -> None:
    assert canonical(name).kind == "axis"


def test_every_spelling_means_one_metric() -> None:
    seen: dict[str, str] = {}
    for metric in METRICS:
        for spelling in metric.spellings:
            assert seen.setdefault(spelling, metric.name) == metric.name
            assert spelling == spelling.lower()


@given(st.text(max_size=200))
def test_any_text_is_a_tag(tag: str) -> None:
    name = canonical(tag)
    assert name.split in ("train", "val", "test", "none")
    assert name.better in ("min", "max", None)

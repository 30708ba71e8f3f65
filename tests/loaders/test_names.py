from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afterrun.loaders.errors import UsageError
from afterrun.loaders.names import METRICS, Name, canonical, direction, parse_map, resolve

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
    ("discriminator loss agent", None, "none"),
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

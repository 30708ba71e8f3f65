"""Raw tag -> canonical metric, split, unit and direction, as a table a person can read.

The table is data: ``METRICS`` lists every canonical metric with the spellings that mean it. Split and
aggregation words are taken off a tag first, so ``val/loss``, ``loss_val_epoch`` and ``Loss/Valid`` need no
rows of their own. What the table does not hold stays unknown: ``metric`` null, direction null, never
guessed. Users add rows with ``--map 'TAG=metric:split:min|max'`` or ``[metrics]`` in ``afterrun.toml``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

from afterrun.loaders.errors import UsageError

Better = Literal["min", "max"]
Split = Literal["train", "val", "test", "none"]


@dataclass(frozen=True, slots=True)
class Metric:
    """One canonical metric. ``kind``: loss, quality, axis, rate, gradient, time, throughput, memory, other."""

    name: str
    kind: str
    better: Better | None
    unit: str
    spellings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Name:
    """What a raw tag means. ``metric`` is None where unknown."""

    metric: str | None
    split: Split = "none"
    unit: str = ""
    better: Better | None = None
    kind: str = "other"


def _m(name: str, kind: str, better: Better | None, unit: str, *spellings: str) -> Metric:
    return Metric(name, kind, better, unit, (name, *spellings))


# Spellings are lower case, words joined by "_", without split and aggregation words.
METRICS: tuple[Metric, ...] = (
    # losses: lower is better
    _m(
        "loss",
        "loss",
        "min",
        "",
        "total_loss",
        "losses",
        "lm_loss",
        "nll_loss",
        "ce_loss",
        "cross_entropy",
        "cross_entropy_loss",
        "crossentropy",
        "ce",
        "xent",
        "objective",
        "log_loss",
        "logloss",
        "cost",
        "softmax_loss",
        "mlm_loss",
        "nll",
    ),
    _m("perplexity", "loss", "min", "", "ppl"),
    _m("error", "loss", "min", "", "err", "error_rate", "top1_err", "top1_error"),
    _m("top5_error", "loss", "min", "", "top5_err"),
    _m("wer", "loss", "min", "", "word_error_rate"),
    _m("cer", "loss", "min", "", "character_error_rate"),
    _m("mae", "loss", "min", "", "mean_absolute_error", "l1", "l1_loss"),
    _m("mse", "loss", "min", "", "mean_squared_error", "l2_loss", "mse_loss"),
    _m("rmse", "loss", "min", "", "root_mean_squared_error"),
    _m("mape", "loss", "min", "%", "mean_absolute_percentage_error"),
    _m("fid", "loss", "min", ""),
    _m("bits_per_byte", "loss", "min", "", "bpb"),
    # quality: higher is better
    _m(
        "accuracy",
        "quality",
        "max",
        "",
        "acc",
        "acc1",
        "acc@1",
        "top1",
        "top_1",
        "top1_acc",
        "top1_accuracy",
        "accuracy_top1",
        "categorical_accuracy",
        "sparse_categorical_accuracy",
        "binary_accuracy",
        "token_accuracy",
        "mean_token_accuracy",
    ),
    _m(
        "top5_accuracy",
        "quality",
        "max",
        "",
        "acc5",
        "acc@5",
        "top5",
        "top_5",
        "top5_acc",
        "accuracy_top5",
        "top_k_categorical_accuracy",
    ),
    _m("f1", "quality", "max", "", "f1_score", "macro_f1", "micro_f1", "f1_macro", "f1_micro", "f1_weighted"),
    _m("precision", "quality", "max", "", "precision(b)", "precision(m)"),
    _m("recall", "quality", "max", "", "recall(b)", "recall(m)", "sensitivity"),
    _m("auc", "quality", "max", "", "roc_auc", "auroc", "auc_roc"),
    _m("average_precision", "quality", "max", "", "ap", "auprc", "bbox_ap", "segm_ap"),
    _m("map50", "quality", "max", "", "map50(b)", "map_0.5", "map_50", "map@0.5", "ap50", "map50(m)"),
    _m(
        "map",
        "quality",
        "max",
        "",
        "map50_95(b)",
        "map50-95(b)",
        "map50_95",
        "map_0.5:0.95",
        "map@0.5:0.95",
        "map50-95(m)",
        "coco_map",
    ),
    _m("iou", "quality", "max", "", "miou", "mean_iou", "mean_io_u", "jaccard"),
    _m("dice", "quality", "max", "", "dice_coef", "dice_score"),
    _m("bleu", "quality", "max", "", "sacrebleu", "bleu_4", "bleu4"),
    _m("rouge1", "quality", "max", "", "rouge_1"),
    _m("rouge2", "quality", "max", "", "rouge_2"),
    _m("rougel", "quality", "max", "", "rouge_l"),
    _m("rougelsum", "quality", "max", "", "rouge_lsum"),
    _m("exact_match", "quality", "max", "", "em", "exprate"),
    _m("r2", "quality", "max", "", "r2_score", "r_squared"),
    _m("pearson", "quality", "max", "", "pearsonr"),
    _m("spearman", "quality", "max", "", "spearmanr", "spearman_rho"),
    _m("matthews", "quality", "max", "", "mcc", "matthews_correlation"),
    _m("psnr", "quality", "max", "dB"),
    _m("ssim", "quality", "max", ""),
    _m("score", "quality", "max", ""),
    _m("inception_score", "quality", "max", ""),
    _m("hellaswag", "quality", "max", "", "hella"),
    _m(
        "reward",
        "quality",
        "max",
        "",
        "avg_reward",
        "ep_rew",
        "ep_rew_mean",
        "episode_reward",
        "episode_reward_mean",
        "episode_return",
        "episodic_return",
        "mean_reward",
        "return",
        "returns",
        "r",
    ),
    _m("success_rate", "quality", "max", "", "success"),
    # schedules and gradients
    _m(
        "lr",
        "rate",
        None,
        "",
        "learning_rate",
        "lr_adam",
        "lr_adamw",
        "lr_sgd",
        "lr_group0",
        "lr_pg0",
        "lr/pg0",
        "lr/pg1",
        "lr/pg2",
        "lr_pg1",
        "lr_pg2",
        "current_lr",
        "base_lr",
    ),
    _m("momentum", "rate", None, ""),
    _m("weight_decay", "rate", None, "", "wd"),
    _m("loss_scale", "rate", None, "", "amp_scale", "grad_scale", "scaler_scale"),
    _m(
        "grad_norm",
        "gradient",
        None,
        "",
        "gradient_norm",
        "gradnorm",
        "gnorm",
        "grad_norm_total",
        "total_grad_norm",
        "grad_2.0_norm_total",
        "global_grad_norm",
    ),
    _m("param_norm", "gradient", None, "", "params_norm", "weight_norm"),
    _m("update_ratio", "gradient", None, ""),
    _m("clip_rate", "gradient", None, "", "clip_fraction"),
    # time
    _m(
        "step_time_s",
        "time",
        None,
        "s",
        "step_time",
        "time_step",
        "iter_time",
        "time_per_step",
        "time_per_iteration",
        "batch_time",
        "iteration_time",
        "elapsed_time_per_iteration",
    ),
    _m(
        "data_time_s",
        "time",
        None,
        "s",
        "data_time",
        "time_data",
        "data_loading_time",
        "dataloader_time",
        "data_wait",
        "fetch_time",
    ),
    _m("epoch_time_s", "time", None, "s", "epoch_time", "time_epoch"),
    _m("elapsed_s", "time", None, "s", "elapsed_time", "time_elapsed", "train_time", "walltime"),
    _m("runtime_s", "time", None, "s", "runtime"),
    # throughput and memory
    _m(
        "tokens_per_s",
        "throughput",
        "max",
        "tokens/s",
        "tok/s",
        "tok_per_sec",
        "tokens_per_sec",
        "tokens_per_second",
        "tgs",
    ),
    _m(
        "samples_per_s",
        "throughput",
        "max",
        "samples/s",
        "samples_per_second",
        "samples_per_sec",
        "examples_per_sec",
        "images_per_sec",
        "throughput",
    ),
    _m("steps_per_s", "throughput", "max", "steps/s", "steps_per_second", "steps_per_sec", "it/s"),
    _m("fps", "throughput", "max", "frames/s"),
    _m("mfu", "throughput", "max", "", "model_flops_utilization"),
    _m("flops", "throughput", None, "", "total_flos"),
    _m("gpu_mem_bytes", "memory", None, "bytes", "gpu_memory_bytes"),
    # axes: rows that say where the others lie
    _m("epoch", "axis", None, "epochs", "epochs", "current_epoch"),
    _m(
        "step",
        "axis",
        None,
        "steps",
        "global_step",
        "steps",
        "iteration",
        "iterations",
        "iter",
        "iters",
        "trainer/global_step",
        "_step",
        "update_step",
        "total_timesteps",
        "total_steps",
        "timesteps_total",
        "num_updates",
        "n_updates",
    ),
    _m(
        "tokens",
        "axis",
        None,
        "tokens",
        "num_tokens",
        "total_tokens",
        "tokens_seen",
        "consumed_tokens",
        "num_input_tokens_seen",
    ),
    _m("wall_time", "axis", None, "s", "timestamp", "wall", "_timestamp", "datetime", "created_at"),
)

SPLIT_WORDS: Mapping[str, Split] = {
    "train": "train",
    "training": "train",
    "trn": "train",
    "tr": "train",
    "trl": "train",
    "val": "val",
    "valid": "val",
    "validation": "val",
    "eval": "val",
    "evaluation": "val",
    "dev": "val",
    "vl": "val",
    "test": "test",
    "testing": "test",
    "holdout": "test",
}

# Words that say how a number was aggregated, not what it is.
_AGGREGATION = frozenset(
    {
        "epoch",
        "step",
        "batch",
        "iter",
        "avg",
        "mean",
        "main",
        "running",
        "ema",
        "smoothed",
        "global",
        "metrics",
        "metric",
        "rollout",
        "perf",
        "time",
        "optim",
        "charts",
        "per",
        "vs",
        "iterations",
        "losses",
        "scalars",
        "scalar",
        "by",
        "on",
    }
)

_OPAQUE_LOSS = frozenset(
    {
        "policy",
        "value",
        "entropy",
        "actor",
        "critic",
        "discriminator",
        "generator",
        "disc",
        "gen",
        "adversarial",
        "adv",
        "d",
        "g",
        "gan",
        "pg",
        "kl",
        "aux",
        "contrastive",
    }
)
"""Losses of games: falling is not getting better, so their direction stays unknown."""

_SEPARATORS = re.compile(r"[/\s.:|_-]+")


@cache
def _index() -> dict[str, Metric]:
    index: dict[str, Metric] = {}
    for metric in METRICS:
        for spelling in metric.spellings:
            if index.setdefault(spelling, metric) is not metric:
                raise ValueError(
                    f"the spelling {spelling!r} means both {index[spelling].name} and {metric.name}"
                )
    return index


def metric_of(name: str) -> Metric | None:
    """The canonical metric of this name; None for names outside the table."""
    found = _index().get(name)
    return found if found is not None and found.name == name else None


def direction(metric: str | None) -> Better | None:
    """Whether lower (``min``) or higher (``max``) is better; None where the table does not say."""
    if metric is None:
        return None
    known = metric_of(metric)
    if known:
        return known.better
    words = metric.split("_")
    return "min" if words[-1] == "loss" and not _OPAQUE_LOSS & set(words) else None


@cache
def canonical(tag: str) -> Name:
    """What one tag means on its own, without its siblings."""
    flat = re.sub(r"(?<=[a-z])(?=[A-Z][a-z])", "_", tag.strip()).lower()
    whole = re.sub(r"[\s]+", "_", flat)
    words = [w for w in _SEPARATORS.split(flat) if w]
    splits = [SPLIT_WORDS[w] for w in words if w in SPLIT_WORDS]
    split: Split = next((s for s in splits if s != "train"), splits[0] if splits else "none")
    rest = [w for w in words if w not in SPLIT_WORDS]
    for candidate in _candidates(whole, flat, words, rest):
        metric = _index().get(candidate)
        if metric:
            return Name(metric.name, split, metric.unit, metric.better, metric.kind)
    core = [w for w in rest if w not in _AGGREGATION]
    if core and core[-1] == "loss":
        name = "_".join(core)
        return Name(name, split, "", direction(name), "loss")
    if len(core) > 1 and core[0] == "loss":
        name = "_".join([*core[1:], "loss"])
        return Name(name, split, "", direction(name), "loss")
    return Name(None, split)


def _candidates(whole: str, flat: str, words: list[str], rest: list[str]) -> Iterable[str]:
    """Spellings to look up, from the most to the least literal."""
    yield whole
    yield "_".join(words)
    tail = flat.rsplit("/", 1)[-1]
    yield "_".join(w for w in re.split(r"[\s_]+", tail) if w and w not in SPLIT_WORDS)
    yield "_".join(rest)
    core = [w for w in rest if w not in _AGGREGATION]
    yield "_".join(core)
    if len(core) > 1 and core[0] == core[-1]:  # loss/train_loss, Accuracy/val_accuracy
        yield "_".join(core[1:])
    if core and core[0] in ("lr", "learning"):  # one lr for each parameter group or optimiser
        yield "lr"


def resolve(points: Mapping[str, int], overrides: Mapping[str, Name] | None = None) -> dict[str, Name]:
    """Names of all tags of one run, given the number of points of each.

    A loss or quality metric without a split word is the training one where a validation or test
    sibling exists and no tag with at least as many points says ``train`` itself (Keras and the HF
    Trainer write ``loss`` beside ``val_loss`` / ``eval_loss``).
    """
    names = {tag: canonical(tag) for tag in points}
    held_out = {n.metric for n in names.values() if n.split in ("val", "test") and n.metric}
    explicit: dict[str, int] = {}
    for tag, n in names.items():
        if n.split == "train" and n.metric:
            explicit[n.metric] = max(explicit.get(n.metric, 0), points[tag])
    for tag, n in names.items():
        if (
            n.split == "none"
            and n.kind in ("loss", "quality")
            and n.metric in held_out
            and points[tag] > explicit.get(n.metric or "", 0)
        ):
            names[tag] = replace(n, split="train")
    for tag, name in (overrides or {}).items():
        if tag in names:
            names[tag] = name
    return names


def parse_map(text: str) -> tuple[str, Name]:
    """``TAG=metric[:split[:min|max]]`` -> (tag, name). Raises ``UsageError`` saying what is wrong."""
    tag, eq, right = text.rpartition("=")
    parts = right.split(":")
    if not eq or not tag or not parts[0] or len(parts) > 3:
        raise UsageError(f"--map {text!r}: write 'TAG=metric:split:min|max', for example 'dev/xent=loss:val'")
    metric = parts[0].strip()
    split = parts[1].strip() if len(parts) > 1 and parts[1].strip() else canonical(tag).split
    if split not in ("train", "val", "test", "none"):
        raise UsageError(f"--map {text!r}: the split is train, val, test or none, not {split!r}")
    better = parts[2].strip() if len(parts) > 2 else direction(metric)
    if better not in ("min", "max", None):
        raise UsageError(f"--map {text!r}: the direction is min or max, not {better!r}")
    known = metric_of(metric)
    kind = known.kind if known else "loss" if better == "min" else "quality" if better == "max" else "other"
    return tag, Name(metric, split, known.unit if known else "", better, kind)  # type: ignore[arg-type]  # checked above

"""NaN and infinities: which curve broke first, whether training recovered, and what led up to it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import polars as pl

from afterrun.analyzer.curves.holes import Hole, hole
from afterrun.analyzer.curves.prelude import Prelude, prelude
from afterrun.analyzer.finding import SEVERITY_ORDER, Effect, Evidence, Finding, Severity, Where
from afterrun.analyzer.prose import count, number, place
from afterrun.analyzer.registry import Explanation, Pass, threshold
from afterrun.analyzer.series import Series
from afterrun.analyzer.verdicts import abstained, refuted
from afterrun.analyzer.view import RunView

Role = Literal["train loss", "val loss", "grad norm", "loss part", "other"]

ROLES: tuple[Role, ...] = ("train loss", "val loss", "grad norm", "loss part", "other")
"""Most telling first."""

SHOWN = 8
"""Curves that stand in the evidence; all of them stand in the values."""


@dataclass(frozen=True)
class NonFinite(Pass):
    """Non-finite values in the curves of a run, judged by what they mean for it."""

    code: ClassVar[str] = "non-finite"
    title: ClassVar[str] = "NaN and infinite values"
    about: ClassVar[str] = "curves"
    needs: ClassVar[tuple[str, ...]] = ("metrics",)
    explain: ClassVar[Explanation] = Explanation(
        meaning="A curve holds NaN or infinite values. In the training loss this means that a step went wrong, and when it lasts, that the weights "
        "are lost and every later step is wasted.",
        rule="Every recorded value of every curve is looked at. Critical: the training loss is non-finite to the end, or was never finite; or the loss is no "
        "longer written while the gradient norm is NaN (some trainers drop the field instead of printing NaN). Warning: a non-finite training loss that "
        "recovers; a validation loss that turns non-finite for good or is infinite anywhere after its first finite value; an accuracy or another score that was finite for sustained_points and then NaN to the end for missing_points; a gradient norm that is non-finite to the end for "
        "sustained_points, or in more than grad_share_pct of its values. Information: everything else, such as skipped steps of mixed precision, a metric that is NaN "
        "before its first real value, classes absent from the validation set, and NaN (never an infinity) at regular places, which are cells nobody filled. A held-out column that is "
        "NaN in every row counts as not recorded. The curve that broke first is named by step, then by wall clock.",
        abstains="When no curve is recorded.",
        confused_with="Empty cells written as nan by a CSV writer, a validation that was never run, a loss scaler that skips a step (the gradient norm is infinite once, "
        "the loss is not), and the average over no examples of a class.",
        remedies=(
            "Find the first non-finite tensor: torch.autograd.set_detect_anomaly(True) on the steps before the onset.",
            "Look at the batch of that step: empty targets, zero-length sequences, log(0), division by a count of zero.",
            "If the gradient norm grew before: clip it, lower the learning rate, lengthen the warm-up.",
            "In half precision: use bfloat16 or keep the loss and the normalisations in float32; watch the loss scale.",
            "Stop the run on the first non-finite loss, and restart from the checkpoint before it.",
        ),
        sources=(
            "Megatron-LM, core/rerun_state_machine.py: validation of a loss that is NaN or infinite",
            "PyTorch documentation, automatic mixed precision: the gradient scaler skips steps with infinite gradients",
            "wandb/wandb issue 2202 and aimhubio/aim issue 436: viewers draw nothing where a value is NaN",
        ),
    )

    sustained_points: int = threshold(
        5,
        "non-finite values in a row up to the end from which a gradient norm is no skipped step; finite ones before a score is lost",
        unit="points",
    )
    grad_share_pct: float = threshold(
        5.0,
        "share of non-finite gradient norms from which mixed precision is in trouble",
        unit="% of the values",
    )
    missing_points: int = threshold(
        3,
        "values, all NaN, that end a curve from which a score counts as lost, or the loss as hidden behind its gradient norm",
        unit="points",
    )
    lead_points: int = threshold(50, "values before the onset that the lead-up is taken from", unit="points")

    def run(self, view: RunView) -> Iterable[Finding]:
        """One finding for the run: the worst curve speaks, all curves are listed."""
        curves = [s for s in view.series if s.kind != "axis"]
        if not curves:
            yield abstained(self, view, "No curve is recorded, so none can hold NaN.", ("any metric",))
            return
        main = _main_loss(view)
        holes = sorted(
            (h for h in map(hole, curves) if h is not None),
            key=lambda h: (h.x, h.series.wall_ns[h.first] if h.series.wall_ns is not None else 0),
        )
        absent = [h for h in holes if h.pattern == "always" and not h.inf and h.series is not main]
        if main is not None and main not in [h.series for h in absent] and _unfilled(view, main):
            absent += [h for h in holes if h.series is main]
        holes = [h for h in holes if h not in absent]
        listed = {
            "curves": len(curves),
            "values": sum(map(len, curves)),
            "never_finite": [h.series.tag for h in absent],
        }
        hidden = self._hidden(view, main)
        if hidden is not None:
            yield self._hidden_finding(view, main, hidden, listed)
        elif holes:
            yield self._finding(view, main, holes, listed)
        else:
            yield from self._clean(view, main, absent, listed)

    def _severity(self, h: Hole, role: Role) -> Severity:
        if h.pattern == "regular":
            return "info"
        lasting = h.pattern in ("always", "to the end")
        if role == "train loss":
            return "critical" if lasting else "warning"
        if role == "grad norm":
            often = h.pattern == "transient" and h.share_pct > self.grad_share_pct
            return "warning" if often or (lasting and h.longest >= self.sustained_points) else "info"
        if role in ("val loss", "loss part"):
            # an infinite placeholder before the first evaluation is no fault of the model
            return "warning" if lasting or (h.inf and h.pattern != "first part") else "info"
        lost = h.series.kind == "quality" and h.lost_for_good(self.sustained_points, self.missing_points)
        return "warning" if lost else "info"

    def _finding(
        self, view: RunView, main: Series | None, holes: list[Hole], listed: dict[str, Any]
    ) -> Finding:
        roles = [_role(h.series, main) for h in holes]
        severities = [self._severity(h, r) for h, r in zip(holes, roles, strict=True)]
        order = sorted(
            range(len(holes)), key=lambda i: (SEVERITY_ORDER[severities[i]], ROLES.index(roles[i]), i)
        )
        top, role, severity = holes[order[0]], roles[order[0]], severities[order[0]]
        s = top.series
        lead = prelude(view, s, top.x, self.lead_points)
        lasting = top.tail is not None and severity != "info"
        values: dict[str, Any] = {
            **listed,
            "tag": s.tag,
            "role": role,
            "pattern": top.pattern,
            "first_step": _step(s, top.first),
            "non_finite": top.count,
            "infinite": top.inf,
            "recorded": len(s),
            "share_pct": top.share_pct,
            "first_tag": holes[0].series.tag,
            "first_tag_step": _step(holes[0].series, holes[0].first),
            "recovered_step": _step(s, top.back) if top.back is not None and not lasting else None,
            "lost_from_step": _step(s, top.tail) if lasting and top.tail is not None else None,
            **lead.values(),
            "tags": [_line(h, r) for h, r in zip(holes, roles, strict=True)],
        }
        start = top.tail if lasting and top.tail is not None else top.first
        return Finding(
            code=self.code,
            status="confirmed",
            severity=severity,
            run=view.name,
            rank=s.rank,
            where=Where(
                step_start=_step(s, top.first),
                step_end=_step(s, len(s) - 1 if lasting else _last_bad(s)),
                t_start_ns=int(s.wall_ns[top.first]) if s.wall_ns is not None else None,
                t_end_ns=int(s.wall_ns[-1 if lasting else _last_bad(s)]) if s.wall_ns is not None else None,
            ),
            title=_title(top, role, holes[0], main),
            effect=Effect(
                value=top.share_pct,
                low=top.share_pct,
                high=top.share_pct,
                unit="% of the recorded values",
                level=1.0,
                method="counted",
            ),
            evidence=_evidence(top, holes),
            parameters=self.parameters(),
            wasted_gpu_s=view.gpu_s_between(float(s.x[start]), float(s.x[-1]))
            if lasting and role in ("train loss", "loss part")
            else None,
            advice=_advice(severity, role, top, lead),
            values=values,
        )

    def _hidden(self, view: RunView, main: Series | None) -> Hole | None:
        """The gradient norm's NaN tail, where the loss stopped being written when it began."""
        grad = next((s for s in view.lead if s.metric == "grad_norm" and s.split in ("train", "none")), None)
        broken = hole(grad) if grad is not None else None
        if main is None or grad is None or broken is None or broken.tail is None or not main.finite[-1]:
            return None
        tail = grad.x[broken.tail :]
        return broken if len(tail) >= self.missing_points and main.x[-1] < tail[0] else None

    def _hidden_finding(
        self, view: RunView, main: Series | None, broken: Hole, listed: dict[str, Any]
    ) -> Finding:
        assert main is not None
        assert broken.tail is not None
        grad, tail = broken.series, broken.tail
        lead = prelude(view, main, float(grad.x[tail]), self.lead_points)
        where = place(grad, float(grad.x[tail]))
        return Finding(
            code=self.code,
            status="confirmed",
            severity="critical",
            run=view.name,
            rank=main.rank,
            where=Where(
                step_start=_step(grad, tail),
                step_end=_step(grad, len(grad) - 1),
                t_start_ns=int(grad.wall_ns[tail]) if grad.wall_ns is not None else None,
                t_end_ns=int(grad.wall_ns[-1]) if grad.wall_ns is not None else None,
            ),
            title=f"{main.tag} is no longer written from {where} on and {grad.tag} is {broken.word} to the end "
            f"({count(len(grad) - tail, 'value')}): the trainer leaves the field out when the loss is not finite.",
            effect=Effect(
                value=float(len(grad) - tail), unit="rows without a loss", level=1.0, method="counted"
            ),
            evidence=(
                main.evidence(len(main) - 1, "last loss that was written"),
                grad.evidence(tail, "gradient norm not finite from here on"),
            ),
            parameters=self.parameters(),
            wasted_gpu_s=view.gpu_s_between(float(grad.x[tail]), float(grad.x[-1])),
            advice=_advice("critical", "train loss", broken, lead),
            values={
                **listed,
                "tag": main.tag,
                "role": "train loss",
                "pattern": "hidden",
                "first_step": _step(grad, tail),
                "last_loss_step": _step(main, len(main) - 1),
                "non_finite": len(grad) - tail,
                "first_tag": grad.tag,
                "lost_from_step": _step(grad, tail),
                **lead.values(),
            },
        )

    def _clean(
        self, view: RunView, main: Series | None, absent: list[Hole], listed: dict[str, Any]
    ) -> Iterable[Finding]:
        """No surviving value is non-finite; a rolled-back one is still told."""
        undone = _rolled_back(main) if main is not None else None
        if undone is not None:
            yield self._undone(view, undone, listed)
            return
        points = listed["values"] - sum(h.count for h in absent)
        tags = ", ".join(h.series.tag for h in absent)
        extra = f" {tags} holds NaN in every row and counts as not recorded." if absent else ""
        title = f"All {points:,} recorded values of {count(listed['curves'] - len(absent), 'curve')} are finite.{extra}"
        yield refuted(self, view, title, listed)

    def _undone(self, view: RunView, rows: pl.DataFrame, listed: dict[str, Any]) -> Finding:
        first = rows.row(0, named=True)
        step = first["step"]
        at = f"step {step:,}" if step is not None else "an unknown step"
        return Finding(
            code=self.code,
            status="confirmed",
            severity="warning",
            run=view.name,
            attempt=first["attempt"],
            where=Where(step_start=step, step_end=rows["step"][-1], t_start_ns=first["wall_ns"]),
            title=f"{first['tag']} was non-finite from {at} in attempt {first['attempt']}; the run was rolled back and is finite now.",
            evidence=(
                Evidence(source=first["source"], tag=first["tag"], step=step, value=str(first["value"])),
            ),
            parameters=self.parameters(),
            advice=("See the restart finding for the work that was done twice.", *self.explain.remedies[:2]),
            values={
                **listed,
                "tag": first["tag"],
                "role": "train loss",
                "pattern": "rolled back",
                "first_step": step,
                "non_finite": len(rows),
            },
        )


def _main_loss(view: RunView) -> Series | None:
    """The training loss, also where it never held a finite value."""
    if view.train_loss is not None:
        return view.train_loss
    found = [s for s in view.lead if s.metric == "loss" and s.split in ("train", "none")]
    return max(found, key=len) if found else None


def _unfilled(view: RunView, main: Series) -> bool:
    """Whether a training loss without any finite value is a column nobody filled: evaluations are finite."""
    return not len(main.y) and any(s.split in ("val", "test") and s.better and len(s.y) for s in view.lead)


def _rolled_back(main: Series) -> pl.DataFrame | None:
    rows = main.frame.filter(
        pl.col("superseded") & pl.col("value").is_not_null() & ~pl.col("value").is_finite()
    )
    return None if rows.is_empty() else rows


def _role(s: Series, main: Series | None) -> Role:
    """What the curve is to the run."""
    if main is not None and s.metric == main.metric and s.split == main.split:
        return "train loss"
    if s.metric == "loss" and s.split in ("val", "test"):
        return "val loss"
    if s.metric == "grad_norm":
        return "grad norm"
    return "loss part" if s.kind == "loss" else "other"


def _step(s: Series, row: int) -> int | None:
    return int(s.x[row]) if s.has_step else None


def _last_bad(s: Series) -> int:
    return int(np.flatnonzero(~s.finite)[-1])


def _line(h: Hole, role: Role) -> dict[str, Any]:
    s = h.series
    return {
        "tag": s.tag,
        "rank": s.rank,
        "role": role,
        "pattern": h.pattern,
        "first_step": _step(s, h.first),
        "non_finite": h.count,
        "infinite": h.inf,
        "recorded": len(s),
        "share_pct": h.share_pct,
    }


def _evidence(top: Hole, holes: list[Hole]) -> tuple[Evidence, ...]:
    s = top.series
    rows = [s.evidence(top.first - 1, "last finite value before it")] if top.first else []
    rows.append(s.evidence(top.first, "first non-finite value"))
    if top.back is not None:
        rows.append(s.evidence(top.back, "finite again"))
    others = [h for h in holes if h is not top][: SHOWN - len(rows)]
    return (*rows, *(h.series.evidence(h.first, "first non-finite value") for h in others))


def _title(h: Hole, role: Role, first: Hole, main: Series | None) -> str:
    text = h.sentence()
    if first is not h and first.x < h.x:
        text += f"; {first.series.tag} broke first, at {place(first.series, first.x)}"
    untouched = role != "train loss" and main is not None and bool(main.finite.all())
    return f"{text}; the training loss is finite throughout." if untouched else f"{text}."


def _advice(severity: Severity, role: Role, top: Hole, lead: Prelude) -> tuple[str, ...]:
    s = top.series
    if severity == "info":
        if role == "grad norm":
            return ("Nothing to do if training is in mixed precision: the scaler skips such steps.",)
        return (f"Nothing to do unless {s.tag} is needed: the training loss is not affected.",)
    if role == "val loss":
        return (
            "Look at the evaluation: an empty split, log(0), half precision outside of autocast.",
            f"Do not choose a checkpoint by {s.tag} while it is not finite.",
        )
    at = place(s, top.x)
    advice = []
    if lead.last_finite_step is not None and severity == "critical":
        advice.append(f"Go back to the last checkpoint before step {lead.last_finite_step:,}.")
    if lead.grew:
        grad, loss = number(lead.grad_growth_factor), number(lead.loss_growth_factor)
        advice.append(
            f"Clip the gradient norm and lower the learning rate: before it broke, the gradient norm grew by {grad} x and the loss by {loss} x."
        )
        advice.append(f"Then look at the batch of {at}.")
    else:
        advice.append(f"Look at the batch of {at}: nothing led up to it.")
        advice.append("Run the steps before it under torch.autograd.set_detect_anomaly(True).")
    if lead.loss_scale_halvings:
        advice.append(f"Use bfloat16: the loss scale was lowered {lead.loss_scale_halvings} times before.")
    if top.tail is not None:
        advice.append("Stop a run on the first non-finite loss.")
    return tuple(advice)

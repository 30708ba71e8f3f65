"""Overfitting: the held-out metric turned for good while training went on improving."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from afterrun.analyzer.curves.early_stop import Replay
from afterrun.analyzer.curves.generalisation import Assessment, assess, compared, measures, other_metrics
from afterrun.analyzer.curves.level_shift import after_jump
from afterrun.analyzer.curves.matching import Matched, match, stand_ins
from afterrun.analyzer.curves.overfit_text import (
    drift_title,
    few_title,
    healthy_title,
    jump_title,
    overfit_title,
)
from afterrun.analyzer.finding import Effect, Evidence, Finding, Status, Where, jsonable
from afterrun.analyzer.prose import count, number, percent, place
from afterrun.analyzer.registry import Explanation, Pass, threshold
from afterrun.analyzer.series import Series
from afterrun.analyzer.verdicts import abstained, refuted
from afterrun.analyzer.view import Pair, RunView

TOLD_BY = ("divergence", "level-shift")
"""Findings that tell why both curves rose."""


@dataclass(frozen=True, kw_only=True)
class Overfit(Pass):
    """Held-out metric rises for good after its minimum while the training metric keeps improving."""

    code: ClassVar[str] = "overfit"
    title: ClassVar[str] = "Overfitting"
    about: ClassVar[str] = "curves"
    needs: ClassVar[tuple[str, ...]] = ("metrics",)
    after: ClassVar[tuple[str, ...]] = TOLD_BY
    explain: ClassVar[Explanation] = Explanation(
        meaning="From some step on the model got worse on data it does not train on while it got better on the data it trains on. "
        "Everything after that step was paid for and made the result worse.",
        rule="The turn is the minimum of the running median of the held-out curve (window max(3, 7 % of the evaluations)). After it there must be at least "
        "min_after evaluations with a rising trend (Kendall's test on decorrelated blocks, one-sided p < p_confirmed) and a rise of more than min_rise_pct "
        "and of confirmed_se standard errors. On the work scale u (log of a loss, logit of an accuracy, lower is better): rise = median(last q) - median(q around the minimum), "
        "q = max(3, tail / 4), se = 1.2533 sigma sqrt(2 / q_eff). The training curve must fall over the same stretch (95 % interval of its Theil-Sen slope below 0) "
        "or have reached its floor. A held-out metric without a training curve of its own is put beside the training loss. Weaker evidence (p_possible, possible_se; without a trend a rise of far_factor times the least one, every later evaluation above the turn) or a training curve too noisy to tell gives 'possible'. A jump to a level far above the noise that lasts for jump_after evaluations to the end is 'possible' too. Every held-out loss is judged and the worst confirmed one speaks. A gap between the curves alone is never overfitting.",
        abstains="Without a held-out curve, without its training curve, with fewer than min_evals real evaluations (repeated values count once), or when the two "
        "curves count different things (batches, epochs) and no wall clock brings them together.",
        confused_with="A generalisation gap that does not grow, divergence (the training loss rises too), drift of the validation data or of batch-norm statistics "
        "(training stands still), double descent (the held-out curve comes back), one unlucky last evaluation.",
        remedies=(
            "Keep the checkpoint next to the turn instead of the last one.",
            "Stop early: the patience table says which rule would have stopped where and what it gives up.",
            "Plan fewer epochs so that the learning-rate schedule ends near the turn.",
            "Regularise: more data or augmentation, weight decay, dropout, label smoothing; freeze layers when fine-tuning.",
            "Check that accuracy, or whatever counts, turns at the same place: cross-entropy often rises first because of over-confidence.",
        ),
        sources=(
            "L. Prechelt, Early Stopping - But When? (1998): GL, PQ and UP criteria",
            "SageMaker Debugger rules Overfit and Overtraining: the rules to beat; both call a gap overfitting",
            "Kendall (1938), Theil (1950), Sen (1968): trend tests",
        ),
    )

    min_evals: int = threshold(10, "real evaluations below which the pass abstains", unit="evaluations")
    min_after: int = threshold(5, "evaluations needed after the minimum", unit="evaluations")
    min_rise_pct: float = threshold(
        1.0,
        "least rise: percent of a loss, percentage points of an accuracy, percent of the range of other metrics",
    )
    far_factor: float = threshold(
        20.0,
        "rise, in units of the least one, that is 'possible' without a trend where every later evaluation is worse than the turn",
    )
    jump_after: int = threshold(
        3, "evaluations at the new level for a jump of the held-out curve", unit="evaluations"
    )
    p_confirmed: float = threshold(0.01, "p value of the rising trend for 'confirmed'")
    p_possible: float = threshold(0.02, "p value of the rising trend for 'possible'")
    confirmed_se: float = threshold(3.0, "rise for 'confirmed'", unit="standard errors")
    possible_se: float = threshold(2.0, "rise for 'possible'", unit="standard errors")
    floor_share: float = threshold(
        0.01,
        "a training loss below this share of its start, or an accuracy this near to 1, has nothing left to learn",
    )

    def run(self, view: RunView) -> Iterable[Finding]:
        """One finding: the worst confirmed one of all held-out losses, else that of the first assessable pair.

        Given pairs come first, then the loss, then other metrics.
        """
        pairs = view.pairs or stand_ins(view)
        if not pairs:
            yield self._no_pair(view)
            return
        problems: list[Finding] = []
        verdicts: list[Finding] = []
        for pair in sorted((*pairs, *_further_losses(view)), key=lambda p: _rank(view, p)):
            if verdicts and not _is_loss(pair.val):
                break
            matched = match(pair)
            problem = self._problem(view, pair, matched)
            if problem is None and isinstance(matched, Matched):
                found = assess(matched, min_rise_pct=self.min_rise_pct, floor_share=self.floor_share)
                verdicts.append(self._verdict(view, found))
            if problem is not None:
                problems.append(problem)
        yield _worst(verdicts) if verdicts else problems[0]

    def _no_pair(self, view: RunView) -> Finding:
        blank = next((s for s in view.lead if s.split in ("val", "test") and s.metric and not len(s.y)), None)
        if blank is not None:
            infinite = np.isinf(blank.value).any()
            what = "are NaN; no validation took place" if not infinite else "are infinite or NaN"
            title = f"Overfitting: {blank.tag} has no finite value, all {len(blank.value)} {what}."
            return abstained(
                self, view, title, (f"finite values of {blank.tag}",), {"val_tag": blank.tag, "points": 0}
            )
        held = next((s for s in view.lead if s.split in ("val", "test") and s.better and len(s.y)), None)
        if held is not None:
            hint = view.map_hint(held.metric or "loss", "train")
            title = f"Overfitting: {held.tag} has no training curve to stand beside."
            return abstained(
                self, view, title, (f"the training curve of {held.metric}: {hint}",), {"val_tag": held.tag}
            )
        hint = view.map_hint("loss", "val")
        title = "Overfitting: no validation metric is recorded."
        return abstained(self, view, title, (f"a validation loss: {hint}",))

    def _problem(self, view: RunView, pair: Pair, matched: Matched | str) -> Finding | None:
        """Why this pair cannot be assessed; None where it can."""
        if isinstance(matched, str):
            title = f"Overfitting: {pair.train.tag} and {pair.val.tag} cannot be put side by side."
            return abstained(
                self, view, title, (matched,), {"train_tag": pair.train.tag, "val_tag": pair.val.tag}
            )
        n = len(matched.val)
        if n >= self.min_evals:
            return None
        said = " ".join(f"{remark}." for remark in matched.remarks)
        title = f"Overfitting: {count(n, 'evaluation')} of {pair.val.tag}, {self.min_evals} are needed{few_title(matched)}. {said}".strip()
        return abstained(
            self,
            view,
            title,
            (f"{self.min_evals} evaluations of {pair.val.tag} (there are {n})",),
            compared(matched),
        )

    def _strength(self, found: Assessment) -> Status:
        turn = found.turn
        if turn.after < self.min_after or turn.rise <= found.least_rise:
            return "refuted"
        if turn.p_up < self.p_confirmed and turn.rise > self.confirmed_se * turn.se:
            return "confirmed"
        if turn.p_up < self.p_possible and turn.rise > self.possible_se * turn.se:
            return "possible"
        # a few evaluations far above, in no order: too few for a trend, too high for noise
        far = turn.rise > max(self.confirmed_se * turn.se, self.far_factor * found.least_rise)
        cost = found.matched.val_cost
        apart = float(cost[turn.best + 1 :].min()) > float(cost[turn.low : turn.best + 1].max())
        return "possible" if far and apart else "refuted"

    def _verdict(self, view: RunView, found: Assessment) -> Finding:
        status = self._strength(found)
        values = {
            **compared(found.matched),
            **measures(found),
            "other_metrics": other_metrics(view, found.matched.pair),
        }
        course = found.train.course
        jumped = after_jump(found, min_after=self.jump_after, floor_share=self.floor_share)
        if jumped is not None and jumped.train.goes_on:
            told = next(
                (code for code in TOLD_BY if any(f.is_alarm for f in view.earlier.get(code, ()))), None
            )
            if told is not None:
                title = f"No overfitting: {found.val.tag} jumped, and so did the training loss ({told})."
                return refuted(self, view, title, jsonable({**values, "reason": told}))
            values |= {**measures(jumped), "reason": "jumped, not drifted"}
            return self._finding(view, jumped, "possible", values)
        if status == "refuted":
            return refuted(self, view, healthy_title(found, self.min_after), jsonable(values))
        if course == "rising" or (course == "flat" and not found.train.at_floor):
            cause = "divergence" if course == "rising" else "val-drift"
            title = drift_title(found, cause)
            return refuted(self, view, title, jsonable({**values, "reason": cause}))
        if course == "unclear" and not found.train.at_floor:
            if status == "possible":  # two weak signs are none
                return refuted(self, view, healthy_title(found, self.min_after), jsonable(values))
            status = "possible"
        return self._finding(view, found, status, values)

    def _finding(self, view: RunView, found: Assessment, status: Status, values: dict[str, Any]) -> Finding:
        m, turn = found.matched, found.turn
        replay = Replay(view, m)
        last = len(m.val) - 1
        table = replay.patience_table()
        low, high = turn.height - 1.96 * turn.height_se, turn.height + 1.96 * turn.height_se
        return Finding(
            code=self.code,
            status=status,
            severity="warning",
            run=view.name,
            rank=found.val.rank,
            where=Where(
                step_start=m.step_at(turn.best),
                step_end=m.step_at(last),
                t_start_ns=m.wall_at(turn.best),
                t_end_ns=m.wall_at(last),
            ),
            title=jump_title(found) if values.get("reason") else overfit_title(found),
            effect=Effect(
                value=found.size(turn.height),
                low=found.size(low),
                high=found.size(high),
                unit=f"{found.unit} worse than the best level".strip(),
                method="lines through start and end of the tail, normal interval from the noise of an evaluation",
            ),
            evidence=_evidence(found),
            parameters=self.parameters(),
            wasted_gpu_s=replay.gpu_s_after(turn.best),
            advice=_advice(found, table, values["other_metrics"], self.explain.remedies),
            values=jsonable({**values, "would_have_stopped": replay.criteria(), "patience_table": table}),
        )


def _further_losses(view: RunView) -> tuple[Pair, ...]:
    """Held-out losses that no pair holds, beside the training loss."""
    paired = {p.val.tag for p in view.pairs}
    return tuple(p for p in stand_ins(view) if view.pairs and _is_loss(p.val) and p.val.tag not in paired)


def _worst(verdicts: list[Finding]) -> Finding:
    """The confirmed one with the largest rise, else the first."""
    sure = [f for f in verdicts if f.status == "confirmed"]
    return max(sure, key=lambda f: float(f.values["rise"])) if sure else verdicts[0]


def _is_loss(s: Series) -> bool:
    """Parts such as KL terms and adversarial losses have no direction and are none."""
    return s.better == "min" and (s.metric or "").endswith("loss")


def _rank(view: RunView, pair: Pair) -> tuple[bool, bool, bool, bool]:
    given = (pair.train.tag, pair.val.tag) in view.pairs_given
    return (not given, pair.val.metric != "loss", not _is_loss(pair.val), pair.val.split == "test")


def _evidence(found: Assessment) -> tuple[Evidence, ...]:
    m, turn = found.matched, found.turn
    raw_best = int(np.argmin(m.val_cost))
    notes = {
        0: "first evaluation",
        raw_best: "best evaluation",
        turn.best: "turn of the running median",
        len(m.val) - 1: "last evaluation",
    }
    rows = [found.val.evidence(found.val.row_of(i), note) for i, note in sorted(notes.items())]
    train = m.pair.train
    return (*rows, train.evidence(train.row_of(len(train.y) - 1), "last training value"))


def _advice(
    found: Assessment, table: list[dict[str, Any]], others: list[dict[str, Any]], remedies: tuple[str, ...]
) -> tuple[str, ...]:
    keep = f"Keep the checkpoint next to {place(found.val, float(found.matched.x[found.turn.best]))} instead of the last one."
    stops = [r for r in table if r["stops"] and not r["min_delta_pct"] and (r["given_up_pct"] or 0.0) < 1.0]
    rule = remedies[1]
    if stops:
        first = min(stops, key=lambda r: r["patience"])
        saved = percent(first["saved_pct"])
        rule = (
            f"Stop early: patience {first['patience']} would have stopped "
            + ("" if first["stop_step"] is None else f"at step {first['stop_step']:,} ")
            + f"and kept {found.val.tag} {number(first['kept_value'], 4)}, saving {saved} of the run."
        )
    later = [
        o for o in others if o["best_step"] is not None and o["best_step"] > found.matched.x[found.turn.high]
    ]
    metric = [
        f"Choose the checkpoint by the metric that counts: {o['tag']} was best only at step {o['best_step']:,} ({number(o['best_value'])})."
        for o in later[:2]
    ]
    return (keep, *metric, rule, *remedies[2:])

"""What each step is made of: computing, exposed communication and copies, idle time by cause."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from afterrun.analyzer.finding import Finding
from afterrun.analyzer.prose import span_time
from afterrun.analyzer.trace.words import device_name
from afterrun.analyzer.view import RunView
from afterrun.plots.canvas.paint import paint
from afterrun.plots.content.compose import run_title
from afterrun.plots.content.device import ROLES, STATE_WORDS, notes_of, state_keys, states, time_unit
from afterrun.plots.registry import Figure, Prepared, Skip
from afterrun.plots.spec import Panel, XAxis, rows, stack

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MplFigure

    from afterrun.plots.theme import Theme

MOST_STEPS = 400


class StepStack(Figure):
    """One bar a marked step of the most idle device."""

    name = "step-stack"
    title = "What each step is made of"
    codes: ClassVar[tuple[str, ...]] = (
        "gpu-idle",
        "loader-stall",
        "slow-start",
        "checkpoint-stall",
        "step-outliers",
    )

    def prepare(self, view: RunView, findings: Sequence[Finding]) -> Prepared | Skip:
        """States inside each step, stacked."""
        devices = view.trace.devices
        if not devices:
            return Skip("the trace holds no GPU activity")
        device = max(devices, key=lambda d: d.idle_ns / max(d.span_ns, 1))
        on_device = view.trace.device_steps(device)
        steps = on_device or view.trace.steps(device)
        if steps is None or len(steps) < 2:
            return Skip("the trace marks fewer than two steps")
        low, high = steps.start[:MOST_STEPS], steps.end[:MOST_STEPS]
        number = steps.number[:MOST_STEPS].astype(float)
        unit = time_unit(float(np.median(high - low)))
        times = states(device, view.trace.idle(device), low, high)
        width = 0.42 * float(np.median(np.diff(number))) if len(number) > 1 else 0.4
        base, parts, seen = np.zeros(len(number)), [], set()
        for state in STATE_WORDS:
            part = times[state] / unit.ns
            if not part.any():
                continue
            seen.add(state)
            parts.append(
                rows("main", "box", state, number - width, x_end=number + width, low=base, high=base + part)
            )
            base = base + part
        if not seen:
            return Skip("no GPU activity lies inside the marked steps")
        told = (
            "from the end of the GPU work of one to that of the next"
            if on_device
            else "as the host marks them; time before the first GPU activity is not drawn"
        )
        cut = " (the last one is cut)" if steps.last_is_cut and len(steps) <= MOST_STEPS else ""
        return Prepared(
            frame=stack(parts),
            title=run_title(view, f"what each step of {device_name(device)} is made of"),
            note=f"{len(number)} of {len(steps)} marked steps{cut}; median {span_time(float(np.median(steps.durations)))}, {told}",
            alt=f"{len(number)} steps with a median of {span_time(float(np.median(steps.durations)))}, each split into {', '.join(STATE_WORDS[s] for s in STATE_WORDS if s in seen)}.",
            x=XAxis("step", float(number[0] - 2 * width), float(number[-1] + 2 * width)),
            panels=(Panel("main", f"time in the step, {unit.name}", 0.0, 1.06 * float(base.max())),),
            keys=state_keys(seen),
            marks=notes_of(findings, self.codes),
            roles=dict(ROLES),
        )

    def draw(self, prepared: Prepared, theme: Theme) -> MplFigure:
        """Stacked bars."""
        return paint(prepared, theme)

"""The kernels in which a device spends its time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from afterrun.analyzer.finding import Finding
from afterrun.analyzer.prose import count, percent, span_time
from afterrun.analyzer.trace.kernel_names import distinct_names
from afterrun.analyzer.trace.kernels import kernel_table
from afterrun.analyzer.trace.words import device_name
from afterrun.analyzer.view import RunView
from afterrun.plots.canvas.paint import paint
from afterrun.plots.canvas.text import display_name
from afterrun.plots.content.compose import run_title
from afterrun.plots.content.device import notes_of
from afterrun.plots.registry import Figure, Prepared, Skip
from afterrun.plots.spec import Key, XAxis, row_panel, rows, stack

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MplFigure

    from afterrun.plots.theme import Theme

SHOWN = 12
NAME_CHARS = 44
ROOM = 1.95

_KINDS = {
    "tensor": ("launch", "matrix kernels on tensor cores"),
    "matrix": ("memcpy", "matrix kernels without tensor cores"),
    "": ("compute", "other kernels"),
}


class KernelTable(Figure):
    """Kernels of the busiest device by their share of the kernel time."""

    name = "kernel-table"
    title = "Kernels by time"
    codes: ClassVar[tuple[str, ...]] = ("kernel-hotspot", "no-tensor-cores", "kernel-limit")

    def prepare(self, view: RunView, findings: Sequence[Finding]) -> Prepared | Skip:
        """One bar a kernel."""
        devices = [d for d in view.trace.devices if len(d.kernels)]
        if not devices:
            return Skip("the trace holds no kernels")
        device = max(devices, key=lambda d: d.kernels.total_ns)
        table = kernel_table(device)
        top = table.head(SHOWN).to_dicts()
        frames, kinds = [], []
        for i, k in enumerate(top):
            kind = "tensor" if k["tensor"] else "matrix" if k["matrix"] else ""
            kinds.append(kind)
            words = f"{percent(k['share_pct'])} · {count(k['launches'], 'launch', 'launches')} · median {span_time(k['median_ns'])}"
            frames.append(
                rows(
                    "main",
                    "box",
                    _KINDS[kind][0],
                    [0.0],
                    x_end=[k["share_pct"]],
                    low=[i - 0.36],
                    high=[i + 0.36],
                )
            )
            frames.append(rows("main", "label", words, [k["share_pct"]], y=[float(i)]))
        names = tuple(_shown(name) for name in distinct_names([k["name"] for k in top]))
        longest = max(k["share_pct"] for k in top)
        rest = 100 - sum(k["share_pct"] for k in top)
        return Prepared(
            frame=stack(frames),
            title=run_title(view, f"kernels of {device_name(device)}"),
            note=f"{span_time(device.kernels.total_ns)} of kernel time; {len(top)} of {len(table)} names, the others {percent(max(rest, 0))}",
            alt="; ".join(f"{n} {percent(k['share_pct'])}" for n, k in zip(names[:4], top, strict=False))
            + " of the kernel time.",
            x=XAxis("share of the kernel time, %", 0.0, ROOM * longest, whole=False, end=longest),
            panels=(row_panel("main", names),),
            keys=tuple(Key("box", role, text) for kind, (role, text) in _KINDS.items() if kind in kinds),
            marks=notes_of(findings, self.codes),
            roles={role: role for role, _ in _KINDS.values()},
        )

    def draw(self, prepared: Prepared, theme: Theme) -> MplFigure:
        """Horizontal bars."""
        return paint(prepared, theme)


def _shown(name: str) -> str:
    """At most ``NAME_CHARS``; what sets a kernel apart from its like (behind the dot) is cut last."""
    head, dot, apart = name.partition(" · ")
    if not dot:
        return display_name(name, NAME_CHARS)
    apart = display_name(apart, NAME_CHARS // 2)
    return f"{display_name(head, NAME_CHARS - len(apart) - len(dot))}{dot}{apart}"

"""Views, findings and drawn texts for tests of figures."""

from __future__ import annotations

from typing import Any

import numpy as np

from afterrun.analyzer.finding import Finding, Where
from afterrun.analyzer.view import RunView
from tests.support.tables import make_view


def finding(code: str, start: int | None = None, end: int | None = None, **options: Any) -> Finding:
    """A finding made by hand; what is no field of it goes to ``values``."""
    fields = {"status": "confirmed", "severity": "warning", "run": "run"}
    fields |= {k: options.pop(k) for k in ("status", "severity", "run", "wasted_gpu_s") if k in options}
    return Finding(
        code=code, where=Where(step_start=start, step_end=end), title=code, values=options, **fields
    )


def loss_view(n: int = 400, *, run: str = "run", noise: float = 0.05, seed: int = 0) -> RunView:
    """Training loss, validation loss every 20 steps and a learning rate, all well behaved."""
    rng = np.random.default_rng(seed)
    step = np.arange(1, n + 1)
    train = (0.5 + 2.0 * np.exp(-step / (n / 4))) * np.exp(noise * rng.normal(size=n))
    at = step[19::20]
    val = 0.6 + 2.0 * np.exp(-at / (n / 4))
    lr = 1e-3 * np.minimum(1.0, step / 20)
    return make_view({"train/loss": (step, train), "val/loss": (at, val), "lr": (step, lr)}, run=run)


def texts(figure: Any) -> list[Any]:
    """Every visible, non-empty text of a figure."""
    from matplotlib.text import Text

    return [t for t in figure.findobj(Text) if t.get_visible() and t.get_text().strip()]


def overlaps(figure: Any, artists: list[Any]) -> list[tuple[str, str]]:
    """Pairs of texts whose boxes share more than a hair of area, as rendered."""
    renderer = figure.canvas.get_renderer()
    boxes = [(t.get_text(), t.get_window_extent(renderer)) for t in artists]
    found = []
    for i, (name, a) in enumerate(boxes):
        for other, b in boxes[i + 1 :]:
            wide = min(a.x1, b.x1) - max(a.x0, b.x0)
            high = min(a.y1, b.y1) - max(a.y0, b.y0)
            if wide > 1.0 and high > 1.0:
                found.append((name, other))
    return found

from __future__ import annotations

import numpy as np

from afterrun.plots.figures.gradient_layers import MOST_LAYERS, GradientLayers
from afterrun.plots.registry import Prepared, Skip
from tests.support.tables import make_view

X = np.arange(6) * 10


def prepared(sizes: dict[str, list[float]]) -> Prepared | Skip:
    return GradientLayers().prepare(
        make_view({f"grad_norm/{k}.weight": (X, v) for k, v in sizes.items()}), []
    )


def test_cells_are_logarithms_between_the_smallest_and_the_largest() -> None:
    found = prepared({"a": [1e-4] * 6, "b": [1e-2] * 6, "c": [1.0] * 6})
    assert isinstance(found, Prepared)
    assert [p.rows for p in found.panels] == [("a", "b", "c")]
    cells = found.frame.sort("x", "low")["y"].to_numpy().reshape(6, 3)
    np.testing.assert_allclose(cells, [[0.0, 0.5, 1.0]] * 6, atol=1e-9)
    assert "white 0.000100 or less, full 1 or more" in found.note
    assert "a gets the least" in found.alt


def test_zeros_leave_holes() -> None:
    found = prepared({"a": [0.0, 0.0, 1.0, 1.0, 1.0, np.inf], "b": [1.0] * 6})
    assert isinstance(found, Prepared)
    assert len(found.frame) == 12 - 3


def test_of_many_layers_the_weakest_are_drawn() -> None:
    found = prepared({f"layer{i}": [1e-9 if i == 77 else 1.0] * 6 for i in range(100)})
    assert isinstance(found, Prepared)
    (panel,) = found.panels
    assert panel.rows is not None
    assert len(panel.rows) <= MOST_LAYERS
    assert "layer77" in panel.rows


def test_one_layer_is_no_picture() -> None:
    assert isinstance(prepared({"a": [1.0] * 6}), Skip)
    assert isinstance(prepared({"a": [0.0] * 6, "b": [0.0] * 6}), Skip)

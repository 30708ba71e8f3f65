from __future__ import annotations

import numpy as np
import pytest

from afterrun.analyzer.layers.layers import grid, layers_of, of_role
from afterrun.analyzer.layers.moments import moments
from afterrun.analyzer.layers.roles import Tensor, tensor_of
from tests.support.tables import histogram_rows, make_view


@pytest.mark.parametrize(
    ("tag", "role", "layer", "minor"),
    [
        ("layer1.0.conv.weight.grad", "gradient", "layer1.0.conv", False),
        ("gradients/layer1.weight", "gradient", "layer1", False),
        ("dense/kernel_0", "weight", "dense_0", False),
        ("dense/kernel_0_grad", "gradient", "dense_0", False),
        ("activations/relu1", "activation", "relu1", False),
        ("relu1", "activation", "relu1", False),
        ("fc1.bias/grad", "gradient", "fc1.bias", True),
        ("parameters/fc.weight", "weight", "fc", False),
    ],
)
def test_tags_of_histograms(tag: str, role: str, layer: str, minor: bool) -> None:
    found = tensor_of(tag)
    assert found is not None
    assert (found.role, found.layer, found.minor) == (role, layer, minor)


@pytest.mark.parametrize("tag", ["loss", "grad_norm", "train/grad_norm_loss_critic", "images/input", ""])
def test_tags_of_no_layer(tag: str) -> None:
    assert tensor_of(tag) is None


def test_scalars_must_say_that_they_are_a_size() -> None:
    assert tensor_of("grad_2.0_norm/encoder.0.weight", scalar=True) == Tensor("gradient", "encoder.0", False)
    assert tensor_of("grad_2.0_norm_total", scalar=True) is None
    assert tensor_of("weights/fc1", scalar=True) is None


def test_moments_by_hand() -> None:
    rows = histogram_rows(
        "run",
        {
            # two values in [-2, 0], two in [0, 4]: mean |x| = (2*1 + 2*2)/4, mean x^2 = (2*4/3 + 2*16/3)/4
            "wide": [(0, [-2, 0, 4], [2, 2])],
            # three zeros in a fine bucket, one value in [1, 2]
            "zeros": [(0, [0, 1e-12, 1, 2], [3, 0, 1])],
            "nothing": [(0, [0, 0], [5])],
            "empty": [(0, [], [])],
            # evenly over zero: |x| has mean 1/2
            "across": [(0, [-1, 1], [8])],
        },
    )
    m = moments(rows)
    assert m.mean_abs[0] == 1.5
    assert m.rms[0] == pytest.approx(np.sqrt(10 / 3))
    assert np.isnan(m.zero_share[0]), "the buckets beside zero are wide"
    assert m.zero_share[1] == 0.75
    assert m.zero_share[2] == 1.0
    assert np.isnan([m.mean_abs[3], m.zero_share[3], m.low[3]]).all()
    assert m.mean_abs[4] == 0.5
    assert (m.low[0], m.high[0], m.low[1], m.high[1]) == (-2, 4, 0, 2)
    assert m.count.tolist() == [4, 4, 5, 0, 8]


def test_histograms_go_before_scalars_and_the_last_write_wins() -> None:
    told = {"fc.weight.grad": [(0, [0, 2], [1]), (10, [0, 4], [1]), (10, [0, 8], [1])]}
    view = make_view(
        {"grad_norm/fc.weight": ([0, 10], [7.0, 7.0]), "grad_norm/out.weight": ([0, 10], [1.0, 3.0])},
        histograms=told,
    )
    layers = layers_of(view.tables.histograms, view.lead)
    assert [(la.name, la.size.tolist()) for la in of_role(layers, "gradient")] == [
        ("fc", [1.0, 4.0]),
        ("out", [1.0, 3.0]),
    ]


def test_grid_holds_common_steps() -> None:
    view = make_view({"grad_norm/a.w": ([0, 5, 10], [1.0, 2.0, 3.0]), "grad_norm/b.w": ([0, 10], [4.0, 6.0])})
    table = grid(view.layers)
    assert table is not None
    assert table.x.tolist() == [0, 10]
    assert table.size.tolist() == [[1, 4], [3, 6]]
    assert grid(view.layers[:1]) is None

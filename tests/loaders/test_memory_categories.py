"""Categories of memory from call stacks: a short history whose bytes can be added up by hand."""

from __future__ import annotations

from typing import Any

import pytest

from afterrun.loaders.traces.memory_categories import by_category, category_of

FORWARD = [
    {"filename": "??", "name": "at::_ops::add_Tensor::call(at::Tensor const&)"},
    {"filename": "/w/model.py", "name": "forward"},
    {"filename": "/p/torch/nn/modules/module.py", "name": "_call_impl"},
    {"filename": "/w/train.py", "name": "main"},
]
BACKWARD = [
    {"filename": "??", "name": "torch::autograd::generated::DivBackward0::apply(std::vector<at::Tensor>&&)"},
    {"filename": "??", "name": "torch::autograd::Engine::thread_main(std::shared_ptr<GraphTask> const&)"},
]
OPTIMIZER = [
    {"filename": "/p/torch/optim/adamw.py", "name": "_init_group"},
    {"filename": "/p/torch/optim/optimizer.py", "name": "wrapper"},
]
MOVED = [{"filename": "/p/torch/nn/modules/module.py", "name": "_apply"}, *FORWARD[3:]]


@pytest.mark.parametrize(
    ("frames", "expected"),
    [
        (FORWARD, "forward"),
        (BACKWARD, "backward"),
        (
            [*FORWARD[:2], *BACKWARD],
            "backward",
        ),  # a checkpointed forward pass runs again within the backward pass
        (OPTIMIZER, "optimizer"),
        (MOVED, "parameters"),
        ([{"filename": "??", "name": "c10d::ProcessGroupNCCL::allreduce"}], "communication"),
        ([{"filename": "C:\\p\\torch\\utils\\data\\_utils\\pin_memory.py", "name": "pin_memory"}], "data"),
        ([{"filename": "/w/train.py", "name": "main"}], "other"),
        ([], "other"),
        (None, "other"),
        (["odd", {"filename": 3}], "other"),
    ],
)
def test_category_of_a_stack(frames: Any, expected: str) -> None:
    assert category_of(frames) == expected


def event(action: str, addr: int, size: int, at: int, frames: Any = None) -> dict[str, Any]:
    return {"action": action, "addr": addr, "size": size, "time_us": at, "frames": frames}


HISTORY = [
    event("alloc", 1, 100, 10, FORWARD),
    event("alloc", 2, 40, 20, BACKWARD),
    event("free_requested", 1, 100, 30),
    event("free_completed", 1, 100, 31),
    event("free_completed", 9, 30, 40),  # held since before the record
    event("alloc", 3, 7, 50, FORWARD),
]


def test_bytes_of_each_category_after_each_action() -> None:
    # 547 bytes at the end: 40 + 7 of the record, 500 of before, of which 30 were given back meanwhile
    found = by_category(0, HISTORY, end_bytes=547)
    assert found is not None
    rows = [
        (t, s.removeprefix('category="').rstrip('"'), v)
        for t, s, v in found.select("t_ns", "series", "value").rows()
    ]
    assert rows == [
        (10_000, "before the record", 530.0),
        (10_000, "forward", 100.0),
        (20_000, "backward", 40.0),
        (31_000, "forward", 0.0),
        (40_000, "before the record", 500.0),
        (50_000, "forward", 7.0),
    ]


def test_without_stacks_there_are_no_categories() -> None:
    assert by_category(0, [event("alloc", 1, 100, 10)], end_bytes=100) is None
    assert by_category(0, [], end_bytes=100) is None


def test_odd_events_cost_themselves() -> None:
    odd = [{"action": "alloc", "addr": None, "size": 5}, {"action": "alloc", "addr": 4, "size": -5}, {}]
    found = by_category(0, [*odd, *HISTORY], end_bytes=547)
    assert found is not None
    assert found["value"].to_list()[0] == 530.0

"""Names of kernels in a table: short, and different where the kernels are."""

from __future__ import annotations

import pytest

from afterrun.analyzer.trace.kernel_names import distinct_names

ELEMENTWISE = "void at::native::vectorized_elementwise_kernel<4, {}, at::detail::Array<char*, 3> >(int, {})"


def elementwise(*functors: str) -> list[str]:
    return [ELEMENTWISE.format(f, f) for f in functors]


def test_a_name_that_stands_alone_stays_short() -> None:
    assert distinct_names([*elementwise("at::native::FillFunctor<float>"), "ampere_sgemm_128x64_nn"]) == [
        "vectorized_elementwise_kernel",
        "ampere_sgemm_128x64_nn",
    ]


@pytest.mark.parametrize(
    ("names", "apart"),
    [
        (elementwise("at::native::FillFunctor<float>", "at::native::CUDAFunctor_add<float>"), ["FillFunctor", "CUDAFunctor_add"]),
        (
            elementwise("at::native::BinaryFunctor<float, float, at::native::(anonymous namespace)::threshold_kernel_impl<float>(float)::{lambda(float)#1}>", "at::native::FillFunctor<float>"),
            ["threshold_kernel_impl", "FillFunctor"],
        ),
        (["void implicit_sgemm<float, 1024, 6>(int)", "void implicit_sgemm<float, 128, 6>(int)"], ["1024", "128"]),
        (["void cutlass::Kernel<cutlass_80_a>(cutlass_80_a::Params)", "void cutlass::Kernel<cutlass_80_b>(cutlass_80_b::Params)"], ["cutlass_80_a", "cutlass_80_b"]),
        (["void k<float>(int)", "void k<float>(int, int)", "void k<double>(int)"], ["1", "2", "3"]),
    ],
)  # fmt: skip
def test_what_sets_kernels_of_one_template_apart(names: list[str], apart: list[str]) -> None:
    found = distinct_names(names)
    assert [name.partition(" · ")[2] for name in found] == apart
    assert len(set(found)) == len(found)


def test_names_that_differ_late_are_cut_by_whoever_shows_them() -> None:
    long = "split_embedding_backward_codegen_rowwise_adagrad_unweighted_kernel_{}_per_row_1"
    assert distinct_names([long.format("cta"), long.format("warp")]) == [
        long.format("cta"),
        long.format("warp"),
    ]

"""Names of kernels for rows of a table: short, and different where the kernels are."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence

from afterrun.analyzer.trace.words import bare_name

_WORD = re.compile(r"\w+")
_PLAIN = frozenset(
    {
        "void", "const", "unsigned", "signed", "char", "short", "int", "long", "float", "double", "half", "bool", "true", "false", "nullptr", "decltype",
        "operator", "lambda", "anonymous", "namespace", "at", "native", "detail", "c10", "std", "cub", "thrust", "cuda", "cudnn", "cutlass",
    }
)  # fmt: skip
"""Words of C++ and of libraries, which say nothing about what is computed."""

_WRAPPERS = re.compile(
    r"(?:Binary|Unary|AUnary|BUnary)Functor|gpu_kernel_impl\w*|func_wrapper_t|ReduceOp|TensorListMetadata|TensorIterator\w*|Array|Scalar|ClampLimits|Params"
)
"""Templates of PyTorch around the functor that says what is computed."""


def distinct_names(names: Sequence[str]) -> list[str]:
    """A short name for each kernel name (all different); those that would be equal get what sets them apart behind a dot.

    PyTorch's ``vectorized_elementwise_kernel<4, FillFunctor<float>, ...>`` becomes ``vectorized_elementwise_kernel · FillFunctor``
    where another one stands beside it. A number is given where no word tells.
    """
    short = [bare_name(name).removeprefix("at::native::") for name in names]
    alike: dict[str, list[int]] = defaultdict(list)
    for i, name in enumerate(short):
        alike[name].append(i)
    for group in alike.values():
        if len(group) < 2:
            continue
        words = {i: _words(names[i]) for i in group}
        taken: set[str] = set()
        for i in group:
            others = {w for j in group if j != i for w in words[j]}
            word = next((w for w in words[i] if w not in others and w not in taken), str(len(taken) + 1))
            taken.add(word)
            short[i] = f"{short[i]} · {word}"
    return short


def _words(name: str) -> list[str]:
    """What a kernel's template arguments say, the most telling first: names, names of wrappers, numbers."""
    words = list(dict.fromkeys(_WORD.findall(name)))
    names = [w for w in words if not w[0].isdigit() and w not in _PLAIN and len(w) > 1]
    wrappers = [w for w in names if _WRAPPERS.fullmatch(w)]
    telling = [w for w in names if w not in wrappers]
    return [*telling, *wrappers, *(w for w in words if w[0].isdigit())]

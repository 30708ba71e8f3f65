"""What the tag of a tensor says: gradient, weight or activation, and of which layer."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Role = Literal["gradient", "weight", "activation"]

_WORDS: dict[str, Role] = {
    **dict.fromkeys(("grad", "grads", "gradient", "gradients", "gradnorm"), "gradient"),
    **dict.fromkeys(("activation", "activations", "act", "acts", "relu", "preact"), "activation"),
    **dict.fromkeys(("weight", "weights", "kernel", "param", "params", "parameter", "parameters"), "weight"),
}
_MEASURES = frozenset({"norm", "norms", "l2", "mean", "abs", "rms", "histogram", "hist", "histograms"})
"""Words about how a tensor was measured, which say nothing about the layer."""
_IDLE = _MEASURES | {"train", "training", "model"}
_TOTALS = frozenset({"total", "global", "all", "overall"})
_SIZES = frozenset({"norm", "norms", "l2", "mean", "abs", "rms", "gradnorm"})
_STRONGEST_FIRST: tuple[Role, ...] = ("gradient", "activation", "weight")
_MINOR = frozenset(
    {"bias", "biases", "beta", "gamma", "bn", "ln", "norm", "norm1", "norm2", "layernorm", "batchnorm"}
)

_PIECES = re.compile(r"[\s/.:_|-]+")
_PIECE = re.compile(r"[^\s/.:_|-]+")
_SEAM = re.compile(r"[\s/.:_|-]*([\s/.:_|-])[\s/.:_|-]*")
_LIGHTNING = re.compile(r"\bgrad_[\d.inf]+_norm[/_]")
"""``grad_2.0_norm/encoder.weight``: the order of the norm is no layer."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor of the model. ``minor``: a bias or a normalisation, whose scale is no layer's."""

    role: Role
    layer: str
    minor: bool


def tensor_of(tag: str, *, scalar: bool = False) -> Tensor | None:
    """The tensor that a tag is about; None where it names no role, or no layer.

    A scalar must also say that it is a size (``grad_norm/layer1.weight``): ``policy_gradient_loss`` is none.
    """
    tag = _LIGHTNING.sub("grad_norm/", tag)
    words = {w for w in _PIECES.split(tag.lower()) if w}
    if "loss" in words or (scalar and (not _SIZES & words or _TOTALS & words)):
        return None
    roles = {role for w in words if (role := _role(w)) is not None}
    role = next((r for r in _STRONGEST_FIRST if r in roles), None)
    layer = _layer(tag, role) if role is not None else ""
    if role is None or not layer:
        return None
    return Tensor(role, layer, bool(_MINOR & set(_PIECES.split(layer.lower()))))


def _role(word: str) -> Role | None:
    found = _WORDS.get(word)
    numbered = _WORDS.get(word.rstrip("0123456789"))
    return found or (numbered if numbered == "activation" else None)


def _layer(tag: str, role: Role) -> str:
    """The tag without the words for its role and measure; a gradient and its weight get one name."""

    def kept(match: re.Match[str]) -> str:
        word = match[0].lower()
        own = _WORDS.get(word)
        # the words for weights name a parameter beside its gradient: fc1.weight.grad
        idle = own in (role, "weight") if own else word in _IDLE
        return "" if idle else match[0]

    bare = _PIECE.sub(kept, tag)
    return _SEAM.sub(r"\1", bare).strip(" /.:_|-")

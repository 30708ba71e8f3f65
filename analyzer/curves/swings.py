"""Swings of a curve about its course: a line in the spectrum that its own noise does not explain."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from afterrun.analyzer.stats import Array, lag1, mad_sd, running_median

SEGMENT = 256
"""Points of one segment of the spectrum; segments overlap by half."""

LONGEST_SHARE = 0.25
"""Longest period looked for, as a share of a segment: a slower wave is the course of the curve."""

SHORTEST = 2.0
LINE_WIDTH = 1.35
"""A line is the power between its period divided and multiplied by this: swings are no clocks."""

SPIKE_SD = 6.0
"""Robust standard deviations about the course beyond which a value is cut."""

FULL_SHARE = 0.75
"""Share of their median size from which swings count as begun."""


@dataclass(frozen=True, slots=True)
class Swing:
    """The strongest line. ``size`` is half of its peak-to-peak swing, on the scale of the curve.

    ``ratio`` is its power over that of red noise with the same lag-1 correlation; ``share`` the part of the curve's variance
    about its course that lies in the line; ``onset`` the first point from which it swings at full size.
    """

    period: float
    size: float
    ratio: float
    share: float
    onset: int


def swing(u: Array) -> Swing | None:
    """The strongest line of ``u`` (finite, n points); None with fewer than 64 points.

    The course is a weighted mean over twice the longest period, taken off. Spectra of segments (Hann, Welch 1967) are
    averaged and divided by that of an AR(1) process, whose correlation comes from the spectrum without
    the line.
    """
    n = len(u)
    size = min(SEGMENT, n)
    if n < 64:
        return None
    longest = LONGEST_SHARE * size
    e = _about_course(u, int(2 * longest) | 1)
    power = _welch(e, size)
    frequency = np.arange(len(power)) / size
    seen = (frequency >= 1 / longest) & (frequency <= 1 / SHORTEST)
    noise = _red(power, frequency, lag1(e))
    ratio = np.where(seen, power / np.maximum(noise, 1e-30), 0.0)
    top = int(np.argmax(ratio))
    if ratio[top] <= 0:
        return None
    line = (frequency > frequency[top] / LINE_WIDTH) & (frequency < frequency[top] * LINE_WIDTH)
    for _ in range(2):  # the line itself makes neighbouring points alike
        rest = np.where(line, np.minimum(power, noise), power)
        noise = _red(rest, frequency, _correlation(rest, frequency))
    total = float(power[1:].sum())
    above = float(np.maximum(power - noise, 0.0)[line].sum())
    share = above / total if total > 0 else 0.0
    band = _band(e, float(frequency[top]))
    envelope = _envelope(band, int(2 / frequency[top]))
    full = float(np.median(envelope[envelope >= 0.5 * envelope.max()]))
    return Swing(
        period=1 / float(frequency[top]),
        size=math.sqrt(2.0 * share) * float(e.std()),
        ratio=float(power[top] / max(noise[top], 1e-30)),
        share=share,
        onset=int(np.argmax(envelope >= FULL_SHARE * full)),
    )


def _about_course(u: Array, width: int) -> Array:
    """``u`` less its course, spikes cut: they have power at all periods.

    Hann weights let periods up to half the width through as they are; a median would follow swings of two points.
    """
    middle = running_median(u, width)
    limit = SPIKE_SD * mad_sd(u - middle)
    calm = middle + np.clip(u - middle, -limit, limit)
    weights = np.hanning(width + 2)[1:-1]
    course = np.convolve(calm, weights, "same") / np.convolve(np.ones(len(u)), weights, "same")
    return np.asarray(calm - course)


def _welch(e: Array, size: int) -> Array:
    window = np.hanning(size)
    starts = range(0, len(e) - size + 1, max(1, size // 2))
    spectra = [np.abs(np.fft.rfft(window * (e[i : i + size] - e[i : i + size].mean()))) ** 2 for i in starts]
    return np.asarray(np.mean(spectra, axis=0))


def _red(power: Array, frequency: Array, r: float) -> Array:
    """Spectrum of an AR(1) process of the same total power."""
    r = min(max(r, 0.0), 0.98)
    shape = 1 / (1 + r * r - 2 * r * np.cos(2 * np.pi * frequency))
    return np.asarray(shape * power[1:].mean() / shape[1:].mean())


def _correlation(power: Array, frequency: Array) -> float:
    """Lag-1 correlation of a process with this spectrum."""
    return float((power[1:] * np.cos(2 * np.pi * frequency[1:])).sum() / max(power[1:].sum(), 1e-30))


def _band(e: Array, frequency: float) -> Array:
    """``e`` at the frequencies of a line."""
    spectrum = np.fft.rfft(e)
    f = np.arange(len(spectrum)) / len(e)
    spectrum[(f < frequency / LINE_WIDTH) | (f > frequency * LINE_WIDTH)] = 0
    return np.asarray(np.fft.irfft(spectrum, len(e)))


def _envelope(band: Array, width: int) -> Array:
    """Running root mean square."""
    width = max(4, width)
    squares = np.convolve(band**2, np.ones(width) / width, "same")
    return np.asarray(np.sqrt(np.maximum(squares, 0.0)))

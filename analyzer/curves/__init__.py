"""Measurements on curves that passes share: where a curve turns, rests, rises, breaks or restarts."""

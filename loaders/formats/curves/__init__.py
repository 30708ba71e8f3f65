"""Formats that hold training curves."""

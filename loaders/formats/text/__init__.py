"""Formats of text logs."""

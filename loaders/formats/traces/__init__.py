"""Readers of traces: one file a format."""

"""Readers of counters: one file a format."""

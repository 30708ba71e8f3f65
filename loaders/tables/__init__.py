"""Delimited text, from bytes to long rows: encodings, lines, cells, axes, and the books on what was lost."""

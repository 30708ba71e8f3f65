"""JSON lines, from bytes to long rows."""

"""What readers of counters share: the vocabulary of counters and units (docs/decisions/0010)."""

"""What readers of traces share: lanes, clocks, and rows that cannot be true (docs/decisions/0010)."""

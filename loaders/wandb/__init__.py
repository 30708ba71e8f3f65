"""W&B without W&B: the block log, its records, and what exports of a chart or a history look like."""

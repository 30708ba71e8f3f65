"""TensorBoard event files, from bytes to rows: framing, checksums, the way around damage, values."""

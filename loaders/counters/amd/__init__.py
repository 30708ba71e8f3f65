"""What ``rocm-smi`` and ``amd-smi`` write: JSON, CSV and printed tables."""

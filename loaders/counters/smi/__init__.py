"""The text that ``nvidia-smi`` and samplers like it write: tables of samples, the drawn table, reports."""

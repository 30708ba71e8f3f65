"""What readers of Nsight Compute share: numbers in the locale of a file, units to their base, rows of kernels."""

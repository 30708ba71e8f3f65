"""What the events of PyTorch's profiler mean: lanes, device rows, memory, facts of the capture."""

"""What a trace says about devices and their host: activity, gaps, launches, causes, steps, collectives."""

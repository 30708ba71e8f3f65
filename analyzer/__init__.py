"""Tables in, findings out: everything that decides what went wrong."""

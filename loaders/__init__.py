"""Files in, tables out: everything that knows what a log looks like."""

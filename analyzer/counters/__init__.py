"""Counters as series: one device and counter, on one clock, weighted by time."""

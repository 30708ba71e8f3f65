"""Data loading as traces and step times show it."""

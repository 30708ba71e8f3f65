"""Labelled synthetic trainings and how well the passes read them: see ``__main__``."""

"""One file for one figure, found by walking this folder (see ``afterrun.plots.registry``)."""

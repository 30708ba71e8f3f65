"""One file for one pass, found by walking this folder (see ``afterrun.analyzer.registry``)."""

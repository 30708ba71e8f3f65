"""One file for one format, found by walking this folder (see ``afterrun.loaders.registry``)."""

"""Settings of a run as parameters: nested values made flat, YAML by a safe subset, personal facts left out."""

"""One file for each grammar of log lines; found by walking this folder."""

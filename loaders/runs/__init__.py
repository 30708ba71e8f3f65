"""From files to runs: which files belong together, their ranks and attempts, and the tables of one run."""

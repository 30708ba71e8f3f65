"""What both stores of MLflow have in common: states and times of runs, metrics of the machine."""

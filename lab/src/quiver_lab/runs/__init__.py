"""Running experiments: one run, all runs of an experiment, its journal and its progress."""

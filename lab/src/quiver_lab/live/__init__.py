"""A local page that shows trials as they happen. It reads a run's journal and touches nothing of the run."""

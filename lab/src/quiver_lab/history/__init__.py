"""Results beside other results: against a baseline, over commits, between two commits."""

"""Comparisons: several sides measured in turns in one run, so that a machine that changes its speed
changes all of them. Ratios are what is claimed."""

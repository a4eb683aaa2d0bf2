"""The results file, and what is computed from it: cells, ratios, annotations, histograms."""

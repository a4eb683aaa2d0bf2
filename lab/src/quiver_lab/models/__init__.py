"""Models: what throughput and latency should be, fitted to what was measured, with data to draw both."""

"""Traffic generators: each is a measurer in front of a forwarder."""

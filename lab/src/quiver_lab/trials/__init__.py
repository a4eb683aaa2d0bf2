"""Trials: the seam between searches and networks, simulated forwarders, disturbance by the host."""

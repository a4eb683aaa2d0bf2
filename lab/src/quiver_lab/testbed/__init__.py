"""From a scenario to a running forwarder and generator."""

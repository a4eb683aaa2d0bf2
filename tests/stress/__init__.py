"""A stress: changes of configuration under load."""

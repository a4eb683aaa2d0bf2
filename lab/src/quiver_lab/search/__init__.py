"""Searches: each asks for trials and knows nothing about who runs them."""

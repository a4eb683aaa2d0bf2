"""The performance lab of the Quiver software router."""

__version__ = "0.1.0"

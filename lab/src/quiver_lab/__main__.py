"""`python -m quiver_lab` is the command `quiver-lab`."""

from quiver_lab import cli

cli.app()

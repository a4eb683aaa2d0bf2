"""The commands of `quiver-lab`, a file for each kind."""

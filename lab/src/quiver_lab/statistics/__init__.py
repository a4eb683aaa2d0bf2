"""Statistics: how sure a figure is, whether two differ, and when one changed. Pure functions of numbers."""

"""Reporting: from a results file to one page that opens from the disk. It never measures."""

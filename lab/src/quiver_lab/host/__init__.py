"""The machine that measures: its facts, its processes, its huge pages, JSON-RPC to programs on it."""

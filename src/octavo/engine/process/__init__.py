"""The engine in a process of its own, and who keeps it alive."""

"""Processes for work on texts of strangers: they limit themselves, can be killed, and are replaced."""

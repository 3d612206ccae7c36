"""Prompts in: from what a caller gives to the NewRequests an engine takes."""

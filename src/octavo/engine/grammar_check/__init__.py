"""Grammars of requests are checked in a process of their own: it can be killed, and keeps nobody waiting."""

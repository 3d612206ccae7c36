"""Incremental parsers: a model's text, in pieces, becomes content, reasoning and tool calls.

Owns: the formats in which models write calls and reasoning, how they are told from a chat template, and the constraints
under which every output is a valid call.
Does not own: ids of calls, finish reasons, wire formats, compiling constraints, special tokens of a vocabulary.
"""

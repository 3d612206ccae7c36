"""POST /v1/responses: OpenAI's Responses API as another way to write the turns of server/turn.py.

Owns: fields and items of requests, items of answers, events of streams.
Does not own: checks of values, tools, forms of text, running (all of the turn). Nothing is stored.
"""

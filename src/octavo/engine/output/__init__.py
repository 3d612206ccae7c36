"""Outputs: from an engine's deltas to ids, text and logprobs."""

"""Digests of blocks: what makes two blocks interchangeable."""

from __future__ import annotations

import msgspec


class HashExtra(msgspec.Struct, frozen=True, kw_only=True):
    """Something besides token ids that decides KV: an adapter (the whole sequence), an image (a range of it).

    tag: what kind it is, for example "lora" or "image". value: digest or identity of its content.
    start: first position it covers. num_tokens: how many positions; None: to the end.
    """

    tag: str
    value: bytes
    start: int = 0
    num_tokens: int | None = None

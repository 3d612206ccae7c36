"""A tokenizer whose tokens are bytes: 0..255, then an end token and a marker, both special."""

from __future__ import annotations

from collections.abc import Sequence

EOS, MARK = 256, 257
_SPECIAL = {EOS: "<eos>", MARK: "<mark>"}


class ByteTokenizer:
    """Everything the engine asks of a tokenizer, in a few lines."""

    vocab_size = 258
    bos_token_id = None
    eos_token_id = EOS

    def encode(self, text, *, add_special_tokens=True):
        return list(text.encode())

    def decode(self, ids: Sequence[int], *, skip_special_tokens=True):
        kept = [i for i in ids if not (skip_special_tokens and i in _SPECIAL)]
        return b"".join(self.id_to_bytes(i) or b"" for i in kept).decode("utf-8", "replace")

    def id_to_bytes(self, token_id):
        if token_id in _SPECIAL:
            return _SPECIAL[token_id].encode()
        return bytes([token_id]) if 0 <= token_id < 256 else None

    def token_text(self, token_id):
        return (self.id_to_bytes(token_id) or b"").decode("utf-8", "replace")

    def is_special(self, token_id):
        return token_id in _SPECIAL

    def apply_chat_template(
        self,
        messages,
        *,
        tools=None,
        add_generation_prompt=True,
        continue_final_message=False,
        chat_template=None,
        tokenize=False,
        **kwargs,
    ):
        text = "".join(f"[{message['role']}]{message['content']}" for message in messages)
        if kwargs:
            text = f"{sorted(kwargs.items())}{text}"
        return text + ("[assistant]" if add_generation_prompt else "")


class PanicException(BaseException):
    """As the tokenizers package raises it: no Exception, and of a class that cannot be imported."""


class BrittleTokenizer(ByteTokenizer):
    """Fails for one token: with an ordinary error, or with a panic."""

    def __init__(self, fault: type[BaseException], bad_id: int = ord("!")):
        self._fault, self._bad_id = fault, bad_id

    def id_to_bytes(self, token_id):
        if token_id == self._bad_id:
            raise self._fault("index out of bounds")
        return super().id_to_bytes(token_id)

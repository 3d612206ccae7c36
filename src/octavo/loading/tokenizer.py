"""Tokenizer: text <-> token ids <-> bytes, and chat templates, whatever file it came from.

Owns: the one interface the engine sees.   Does not own: reading files (hf_tokenizer.py, gguf_tokenizer.py).
Safe to use from several threads: the vocabulary never changes after construction.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import Any

import tokenizers

from octavo.base.errors import LoadError, ValidationError
from octavo.loading.chat_template import ChatTemplate, TemplateOptions


def is_panic(error: BaseException) -> bool:
    """True for a panic of the tokenizers package: a BaseException of a class that cannot be imported."""
    return type(error).__name__ == "PanicException"


@contextlib.contextmanager
def backend_errors(source: str) -> Iterator[None]:
    """Turn whatever the tokenizers package raises about a damaged vocabulary into a LoadError naming `source`.

    It raises bare Exception, and may panic.
    """
    try:
        yield
    except LoadError:
        raise
    except Exception as error:
        raise LoadError(f"{source} not a usable tokenizer: {error}") from error
    except BaseException as error:
        if not is_panic(error):
            raise
        raise LoadError(f"{source} not a usable tokenizer: {error}") from error


class PieceEncoding(Enum):
    """How the vocabulary writes bytes as text."""

    BYTE_LEVEL = "byte_level"
    """Each byte is one printable character (GPT-2)."""
    SENTENCEPIECE = "sentencepiece"
    """U+2581 is a blank, <0x0A> a byte."""


def byte_level_alphabet() -> dict[str, int]:
    """Character -> byte of the byte-level encoding: printable Latin-1 stands for itself, the rest follows U+0100.

    Source: GPT-2's byte-to-unicode table.
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    alphabet = {chr(byte): byte for byte in printable}
    others = [byte for byte in range(256) if chr(byte) not in alphabet]
    return alphabet | {chr(256 + index): byte for index, byte in enumerate(others)}


_BYTE_OF_CHAR = byte_level_alphabet()
_BLANK = "\u2581"


class Tokenizer:
    """`special_tokens` maps bos_token, eos_token, ... to their texts."""

    def __init__(
        self,
        backend: tokenizers.Tokenizer,
        *,
        encoding: PieceEncoding,
        special_tokens: Mapping[str, str],
        chat_templates: Mapping[str, str],
    ) -> None:
        self._backend = backend
        self._encoding = encoding
        self._special_tokens = dict(special_tokens)
        self._chat_template = ChatTemplate(chat_templates, special_tokens)
        self._bytes: dict[int, bytes] = {}
        special = {idx for idx, token in backend.get_added_tokens_decoder().items() if token.special}
        named = (backend.token_to_id(text) for text in special_tokens.values())
        self._special_ids = frozenset(special | {idx for idx in named if idx is not None})

    @property
    def vocab_size(self) -> int:
        """Ids that have a text, added tokens included; the model's logits may be wider."""
        size: int = self._backend.get_vocab_size(with_added_tokens=True)
        return size

    def to_json(self) -> str:
        """All of it as the text of a tokenizer.json. Cost: 0.05 s for 50,000 tokens."""
        text: str = self._backend.to_str()
        return text

    @property
    def bos_token_id(self) -> int | None:
        return self._named_id("bos_token")

    @property
    def eos_token_id(self) -> int | None:
        return self._named_id("eos_token")

    @functools.cached_property
    def max_token_bytes(self) -> int:
        """No token adds more bytes to a text. Cost: one pass over the vocabulary, the first time."""
        # A piece of a byte-level vocabulary has a character for each byte, so this holds for both encodings.
        return max((len(piece.encode()) for piece in self._backend.get_vocab(with_added_tokens=True)), default=1)

    @property
    def all_special_ids(self) -> list[int]:
        """Ascending."""
        return sorted(self._special_ids)

    @property
    def chat_template(self) -> str | None:
        """The model's own template for ordinary conversations."""
        return self._chat_template.default_source

    @property
    def tool_template(self) -> str | None:
        """The model's own template for conversations with tools."""
        return self._chat_template.tool_source

    def has_template(self, name: str) -> bool:
        """True: one of the model's own templates has this name."""
        return name in self._chat_template.sources

    @property
    def special_tokens(self) -> Mapping[str, str]:
        """bos_token, eos_token, ... -> text: what templates may use."""
        return self._special_tokens

    def is_special(self, token_id: int) -> bool:
        """True for control tokens such as end of turn."""
        return token_id in self._special_ids

    def encode(self, text: str, *, add_special_tokens: bool = True) -> list[int]:
        """Token ids; the model's begin and end tokens are added where it wants them. Raises ValidationError."""
        try:
            ids: list[int] = self._backend.encode(text, add_special_tokens=add_special_tokens).ids
        except (TypeError, UnicodeError) as error:
            raise ValidationError("prompt: not a text of whole Unicode characters", parameter="prompt") from error
        except BaseException as error:
            if not is_panic(error):
                raise
            raise ValidationError(f"prompt: the tokenizer fails on it: {error}", parameter="prompt") from error
        return ids

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool = True) -> str:
        """The text; bytes that are no UTF-8 become U+FFFD, ids without a text are left out."""
        text: str = self._backend.decode(list(ids), skip_special_tokens=skip_special_tokens)
        return text

    def id_to_bytes(self, token_id: int) -> bytes | None:
        """The bytes this token adds to a text; None when the vocabulary has no such id."""
        known = self._bytes.get(token_id)
        if known is None and token_id >= 0:
            piece = self._backend.id_to_token(token_id)
            if piece is not None:
                known = self._bytes[token_id] = self._piece_bytes(piece)
        return known

    def token_text(self, token_id: int) -> str:
        """One token on its own, for people; U+FFFD where it is part of a character."""
        return (self.id_to_bytes(token_id) or b"").decode(errors="replace")

    def apply_chat_template(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = True,
        continue_final_message: bool = False,
        chat_template: str | None = None,
        tokenize: bool = False,
        **kwargs: Any,
    ) -> str | list[int]:
        """The prompt of a conversation: text, or ids without further special tokens. Raises ValidationError."""
        options = TemplateOptions(
            tools=tools,
            add_generation_prompt=add_generation_prompt,
            continue_final_message=continue_final_message,
            chat_template=chat_template,
            variables=kwargs,
        )
        text = self._chat_template.render(messages, options)
        return self.encode(text, add_special_tokens=False) if tokenize else text

    def _named_id(self, name: str) -> int | None:
        text = self._special_tokens.get(name)
        idx: int | None = self._backend.token_to_id(text) if text is not None else None
        return idx

    def _piece_bytes(self, piece: str) -> bytes:
        if self._encoding is PieceEncoding.BYTE_LEVEL:
            known = [_BYTE_OF_CHAR.get(char) for char in piece]
            # A piece that is not written in the alphabet was added as plain text.
            return piece.encode() if None in known else bytes(byte for byte in known if byte is not None)
        if len(piece) == 6 and piece.startswith("<0x") and piece.endswith(">"):
            return bytes.fromhex(piece[3:5])
        return piece.replace(_BLANK, " ").encode()

"""What a front end and its grammar process say to each other.

Owns: the messages.   Does not own: either end, how a message is framed (helper/frames.py).
"""

from __future__ import annotations

import msgspec

from octavo.proto.structured import GrammarKind, GrammarSpec, PreparedGrammar


class StartChecks(msgspec.Struct, frozen=True, kw_only=True, tag="start", forbid_unknown_fields=True):
    """The first message: whose vocabulary it is about."""

    config: msgspec.Raw
    """An EngineConfig, encoded."""


class CheckJob(msgspec.Struct, frozen=True, kw_only=True, tag="job", forbid_unknown_fields=True):
    """Check and prepare this constraint."""

    kind: GrammarKind
    text: str
    options: list[tuple[str, str | bool]]

    @classmethod
    def of(cls, spec: GrammarSpec) -> CheckJob:
        return cls(kind=spec.kind, text=spec.text, options=list(spec.options))

    @property
    def spec(self) -> GrammarSpec:
        return GrammarSpec(self.kind, self.text, tuple(self.options))


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """The process takes jobs. Its first frame."""


class Unusable(msgspec.Struct, frozen=True, kw_only=True, tag="unusable"):
    """It never will: the model's files or its tokenizer cannot be used for grammars. Its first and last frame."""

    message: str


class Admitted(msgspec.Struct, frozen=True, kw_only=True, tag="admitted"):
    """What the engine is to be given."""

    grammar: PreparedGrammar


class Refused(msgspec.Struct, frozen=True, kw_only=True, tag="refused"):
    """A fault of the constraint."""

    message: str
    parameter: str | None
    pointer: str | None


CheckReply = Ready | Unusable | Admitted | Refused

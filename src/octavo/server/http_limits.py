"""Limits of one HTTP connection, whatever it carries."""

from __future__ import annotations

from dataclasses import dataclass

from octavo.config.server_options import ServerConfig

MIB = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpLimits:
    """How much and how slow a client may be."""

    max_connections: int = 2048
    max_header_bytes: int = 16384
    max_header_count: int = 100
    max_body_chunks: int = 65536
    read_timeout_s: float = 10.0
    keep_alive_timeout_s: float = 5.0
    write_timeout_s: float = 60.0

    @classmethod
    def of(cls, config: ServerConfig) -> HttpLimits:
        """As the options say."""
        return cls(**{name: getattr(config, name) for name in cls.__slots__})

    def read_deadline_s(self, num_body_bytes: int) -> float:
        """Seconds from its first byte that a request may take to arrive, having brought so much of its body."""
        return self.read_timeout_s + num_body_bytes / MIB

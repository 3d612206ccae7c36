"""The official clients before a server, and the schemas that tests ask models for with them."""

from __future__ import annotations

from typing import Literal

import pytest

pydantic = pytest.importorskip("pydantic", reason="comes with the clients, which are development extras")


class Pet(pydantic.BaseModel):
    name: str
    kind: Literal["cat", "dog"]
    age: int


class GetWeather(pydantic.BaseModel):
    """The weather of a city."""

    city: str
    unit: Literal["celsius", "fahrenheit"]


class GetTime(pydantic.BaseModel):
    """The time in a city."""

    city: str


def openai_client(server):
    """To be used as a context."""
    openai = pytest.importorskip("openai", reason="the client is a development extra")
    return openai.OpenAI(base_url=f"http://127.0.0.1:{server.port}/v1", api_key="EMPTY", max_retries=0)


def anthropic_client(server, key="EMPTY"):
    """To be used as a context."""
    anthropic = pytest.importorskip("anthropic", reason="the client is a development extra")
    return anthropic.Anthropic(base_url=f"http://127.0.0.1:{server.port}", api_key=key, max_retries=0)

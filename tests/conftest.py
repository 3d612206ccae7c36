"""Shared by all tests: how properties are tried, and where the real models are, if they are there."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes is the machine's affair, and that of whatever else runs on it.
settings.register_profile("octavo", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("octavo")

# A run in the background of a shell begins with SIGINT ignored, and so would every process that a test interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)


def find_model(alias: str) -> Path:
    """The cached file of a model, or skip (fail when OCTAVO_REQUIRE_MODELS is set)."""
    from octavo.base.errors import ModelNotFoundError
    from octavo.loading import resolve_model

    try:
        return resolve_model(alias)
    except ModelNotFoundError:
        message = f"{alias} is not in the cache: run `octavo pull {alias}`"
        if os.environ.get("OCTAVO_REQUIRE_MODELS"):
            pytest.fail(message)
        pytest.skip(message)


@pytest.fixture(scope="session")
def smollm2_path() -> Path:
    """SmolLM2-135M-Instruct, the default model."""
    return find_model("smollm2-135m-instruct")


@pytest.fixture(scope="session")
def qwen_path() -> Path:
    """Qwen2.5-Coder-0.5B-Instruct."""
    return find_model("qwen2.5-coder-0.5b-instruct")


@pytest.fixture(scope="session")
def gemma_path() -> Path:
    """Gemma-3-270m, base."""
    return find_model("gemma-3-270m")


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    """Commands set up logging; the next test must not inherit it."""
    logger = logging.getLogger("octavo")
    handlers, level, propagate = list(logger.handlers), logger.level, logger.propagate
    yield
    logger.handlers[:] = handlers
    logger.setLevel(level)
    logger.propagate = propagate

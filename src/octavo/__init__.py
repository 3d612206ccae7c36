"""Octavo: an LLM inference and serving engine.

Public names are imported when they are first used, so that `import octavo` costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

__version__ = "0.1.0"

_MODULES = {
    "LLM": "octavo.llm",
    "AsyncLLM": "octavo.engine.front.async_llm",
    "AsyncOptions": "octavo.engine.front.async_options",
    "EngineArgs": "octavo.engine.args",
    "SamplingParams": "octavo.proto.sampling",
    "RequestOutputKind": "octavo.proto.sampling",
    "StructuredOutputsParams": "octavo.proto.sampling",
    "TextPrompt": "octavo.engine.input.prompts",
    "TokensPrompt": "octavo.engine.input.prompts",
    "RequestOutput": "octavo.outputs",
    "CompletionOutput": "octavo.outputs",
    "Logprob": "octavo.outputs",
    "RequestMetrics": "octavo.outputs",
    "OctavoError": "octavo.base.errors",
    "ConfigError": "octavo.base.errors",
    "ValidationError": "octavo.base.errors",
    "CapacityError": "octavo.base.errors",
    "LoadError": "octavo.base.errors",
    "EngineDeadError": "octavo.base.errors",
    "OverloadedError": "octavo.base.errors",
}

__all__ = [
    "LLM",
    "AsyncLLM",
    "AsyncOptions",
    "CapacityError",
    "CompletionOutput",
    "ConfigError",
    "EngineArgs",
    "EngineDeadError",
    "LoadError",
    "Logprob",
    "OctavoError",
    "OverloadedError",
    "RequestMetrics",
    "RequestOutput",
    "RequestOutputKind",
    "SamplingParams",
    "StructuredOutputsParams",
    "TextPrompt",
    "TokensPrompt",
    "ValidationError",
    "__version__",
]

if TYPE_CHECKING:
    from octavo.base.errors import (
        CapacityError,
        ConfigError,
        EngineDeadError,
        LoadError,
        OctavoError,
        OverloadedError,
        ValidationError,
    )
    from octavo.engine.args import EngineArgs
    from octavo.engine.front.async_llm import AsyncLLM
    from octavo.engine.front.async_options import AsyncOptions
    from octavo.engine.input.prompts import TextPrompt, TokensPrompt
    from octavo.llm import LLM
    from octavo.outputs import CompletionOutput, Logprob, RequestMetrics, RequestOutput
    from octavo.proto.sampling import RequestOutputKind, SamplingParams, StructuredOutputsParams


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module 'octavo' has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return __all__

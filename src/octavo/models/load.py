"""From a checkpoint to a loaded model: the file in models/ that is named like its model_type builds it.

Owns: the look-up by name.   Does not own: files (loading), arrangement (the model's file).
"""

from __future__ import annotations

import importlib
import importlib.util
import re

from octavo.base.errors import LoadError
from octavo.kernels.ops import OpTable
from octavo.layers.weights import Checkpoint
from octavo.models.assembly import Assembly, Progress
from octavo.models.interface import Model


def load_model(checkpoint: Checkpoint, ops: OpTable, max_model_len: int, progress: Progress | None = None) -> Model:
    """Pack all weights of a checkpoint for `ops`. Cost: reads every tensor once.

    max_model_len: positions the rotary tables reach, in tokens. progress: called with (parts loaded, parts in all).
    Raises LoadError: unknown model_type, a tensor that is missing or of another shape.
    """
    model_type = checkpoint.spec.model_type
    name = f"octavo.models.{model_type}"
    module = None
    if re.fullmatch(r"[a-z][a-z0-9_]*", model_type) and importlib.util.find_spec(name) is not None:
        module = importlib.import_module(name)
    if module is None or not hasattr(module, "build"):
        raise LoadError(f"model_type {model_type!r} is not supported: there is no octavo/models/{model_type}.py")
    model: Model = module.build(Assembly(checkpoint, ops, max_model_len, progress))
    return model

"""Models, one file per Hugging Face `model_type`, written against the op table only."""

from octavo.models.interface import Hidden, Model
from octavo.models.load import load_model

__all__ = ["Hidden", "Model", "load_model"]

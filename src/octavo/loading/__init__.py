"""Models on disk: opening, tokenizers, finding and fetching. See docs/architecture.md."""

from octavo.loading.aliases import ALIASES
from octavo.loading.cache import CachedModel, list_cached
from octavo.loading.checkpoint import Checkpoint
from octavo.loading.download import pull
from octavo.loading.opening import open_checkpoint
from octavo.loading.resolve import resolve_model
from octavo.loading.stored_tensor import StoredTensor
from octavo.loading.tokenizer import Tokenizer

__all__ = [
    "ALIASES",
    "CachedModel",
    "Checkpoint",
    "StoredTensor",
    "Tokenizer",
    "list_cached",
    "open_checkpoint",
    "pull",
    "resolve_model",
]

"""Make tests/data/oracle/tiny/*.npz: logits of the tiny models by Hugging Face transformers.

Not run by the tests, and the only file that needs torch and transformers. In an environment with torch 2.13.0 (CPU),
transformers 5.24.0, numpy and the project's base package on the path:

    PYTHONPATH=src:tests python tests/oracle/make_tiny.py

The models are built from the config.json that fakes/tiny_models.py writes and get the weights of
fakes/tiny_weights.py; attention is transformers' eager one, everything is float32.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch
import transformers
from fakes.tiny_models import TINY_SPECS, hf_config
from fakes.tiny_weights import tiny_tensors

from octavo.config.model_spec import ModelSpec

FOLDER = Path(__file__).resolve().parent.parent / "data" / "oracle" / "tiny"
PROMPT_LENGTH = 75
POSITIONS = np.array([0, 1, 15, 16, 19, 20, 21, 31, 32, 33, 48, 63, 64, 74], np.int32)
"""Borders of blocks and of the window, and the end: logits of all positions would be five times the bytes."""


def compute_logits(spec: ModelSpec, prompt: np.ndarray) -> np.ndarray:
    """All logits [T, V] float32 of one prompt [T]."""
    values = hf_config(spec)
    values.pop("architectures")
    config = transformers.AutoConfig.for_model(values.pop("model_type"), **values)
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager").float().eval()
    state = {name: torch.from_numpy(array) for name, array in tiny_tensors(spec).items()}
    missing, unexpected = model.load_state_dict(state, strict=False)
    if unexpected or set(missing) - {"lm_head.weight"} or bool(missing) != spec.tie_word_embeddings:
        sys.exit(f"weights do not fit: missing {missing}, unexpected {unexpected}")
    model.tie_weights()
    with torch.no_grad():
        return model(torch.from_numpy(prompt)[None].long(), use_cache=False).logits[0].numpy()


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for seed, (name, spec) in enumerate(TINY_SPECS.items()):
        prompt = np.random.RandomState(100 + seed).randint(0, spec.vocab_size, PROMPT_LENGTH).astype(np.int32)
        logits = compute_logits(spec, prompt)
        np.savez_compressed(FOLDER / f"{name}.npz", prompt=prompt, positions=POSITIONS, logits=logits[POSITIONS])
        print(f"{name:20} standard deviation of the logits {logits.std():.2f}")


if __name__ == "__main__":
    main()

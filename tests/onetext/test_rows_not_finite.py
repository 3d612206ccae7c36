"""A prompt whose hidden states are not finite ends before its blocks are published, wherever in the prompt it happens.

The model attends through windows only, so that the end of a long prompt sees nothing of its beginning.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from fakes.hf_folder import write_hf_folder, write_safetensors
from fakes.tiny_models import TINY_SPECS, WINDOW
from fakes.tiny_weights import tiny_tensors

from octavo import LLM, SamplingParams

SPEC = replace(TINY_SPECS["mistral_window"], tie_word_embeddings=False)
BAD = 300
PARAMS = SamplingParams(temperature=0, max_tokens=6, ignore_eos=True)
REACH = SPEC.num_layers * WINDOW


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model whose embedding of one token is NaN."""
    path = write_hf_folder(tmp_path_factory.mktemp("models") / "spoiled", SPEC)
    tensors = tiny_tensors(SPEC)
    tensors["model.embed_tokens.weight"][BAD] = np.nan
    write_safetensors(path / "model.safetensors", tensors)
    return str(path)


@pytest.mark.parametrize("max_num_batched_tokens", [16, 256])
@pytest.mark.parametrize(("kernel_backend", "block_size"), [("reference", 16), ("cpu", 32)])
def test_a_spoiled_prompt_ends_and_hurts_no_other(folder, kernel_backend, block_size, max_num_batched_tokens):
    healthy = [[5 + i * 7 % 250 for i in range(REACH + 20)], [9, 8, 7]]
    spoiled = [*healthy[0][:3], BAD, *healthy[0][4:]]
    options = {"kernel_backend": kernel_backend, "block_size": block_size, "max_num_seqs": 4, "max_model_len": 128}
    options |= {"num_gpu_blocks_override": 14}  # so few that the spoiled blocks are used again
    with LLM(folder, **options, max_num_batched_tokens=max_num_batched_tokens) as llm:
        alone = [llm.generate(prompt, PARAMS, use_tqdm=False)[0].outputs[0].token_ids for prompt in healthy]
        llm.reset_prefix_cache()
        outputs = llm.generate([healthy[0], spoiled, healthy[1]], PARAMS, use_tqdm=False)
        (again,) = llm.generate(spoiled, PARAMS, use_tqdm=False)
        llm.reset_prefix_cache()
        behind = [llm.generate(prompt, PARAMS, use_tqdm=False)[0].outputs[0].token_ids for prompt in healthy]
    first, ended, second = (output.outputs[0] for output in outputs)
    assert [first.token_ids, second.token_ids] == alone == behind
    assert (ended.finish_reason, ended.token_ids) == ("error", [])
    assert "not finite" in (ended.error or "")
    assert again.outputs[0].finish_reason == "error"
    assert again.num_cached_tokens == 0

"""Options of the model: which one, how it is read, what its answers may hold.

Owns: names, defaults and one-line docs of the group `model`.   Does not own: finding and reading models (loading).
"""

# ruff: noqa: RUF009 - option() returns a dataclass field, not a value shared by instances

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from octavo.config.option import AUTO, Auto, option

Dtype = Literal["float32", "bfloat16"]
LoadFormat = Literal["auto", "safetensors", "gguf"]

DEFAULT_MODEL = "smollm2-135m-instruct"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    """Which model, how it is read, and what its answers may hold."""

    model: str = option(
        DEFAULT_MODEL,
        "Model: an alias (see `octavo models`), a folder, a .gguf file or a Hugging Face id.",
        kind="text",
        common=True,
        differs="The default is SmolLM2-135M-Instruct, which answers on two CPU cores; vLLM's is Qwen/Qwen3-0.6B.",
    )
    tokenizer: str | None = option(None, "Tokenizer, if it is not the model's own: a folder or id.", kind="text")
    served_model_name: tuple[str, ...] = option(
        (), "Names a server answers to; the first is shown in responses and metrics.", kind="names"
    )
    dtype: Dtype | Auto = option(
        AUTO,
        "Type of weights, matrix inputs and KV; sums, norms, softmax and logits are float32 always.",
        kind="choice",
        choices=("float32", "bfloat16"),
        auto="float32 for the reference back end and for float32 checkpoints, bfloat16 otherwise",
        aliases={"float": "float32", "fp32": "float32", "bf16": "bfloat16", "fp16": "float16", "half": "float16"},
        refused={"float16": "no CPU kernel computes in float16; use bfloat16 (same size) or float32 (exact)"},
        common=True,
        differs="float16 is refused: CPUs have no matrix unit for it, and bfloat16 has the same size.",
    )
    max_model_len: int | Auto = option(
        AUTO,
        "Longest sequence, prompt and output together.",
        kind="count",
        unit="tokens",
        minimum=2,
        auto="the largest that the KV memory holds, up to what the model was made for",
        aliases={"-1": AUTO},
        common=True,
        differs="auto is the default, and a length above the checkpoint's is refused; vLLM starts from the "
        "checkpoint's and refuses to start when that does not fit.",
    )
    seed: int = option(0, "Seed of requests that bring none.", kind="count", minimum=0, maximum=2**63 - 1, common=True)
    trust_remote_code: bool = option(
        False,
        "Accepted; a model that needs code from its repository is refused all the same.",
        kind="switch",
        differs="No code from a model's repository is ever run.",
    )
    revision: str | None = option(None, "Branch, tag or commit of the model on the hub.", kind="text")
    tokenizer_revision: str | None = option(None, "Branch, tag or commit of the tokenizer on the hub.", kind="text")
    hf_token: str | None = option(
        None, "Token for gated models on the hub; HF_TOKEN is read too.", kind="text", secret=True
    )
    download_dir: str | None = option(None, "Folder for downloaded models, in place of the cache.", kind="text")
    load_format: LoadFormat = option(
        "auto",
        "Format that the weights must have. auto: whichever they have.",
        kind="choice",
        choices=("auto", "safetensors", "gguf"),
        refused={
            "pt": "pickled weights can run code and are not read; convert them to safetensors",
            "dummy": "this release has no random weights; use a small model such as " + DEFAULT_MODEL,
        },
        differs="pt is refused: unpickling a file may run code. dummy is not in this release.",
    )
    skip_tokenizer_init: bool = option(
        False, "Load no tokenizer: prompts and outputs are token ids only.", kind="switch"
    )
    generation_config: str = option(
        "auto",
        "Where default sampling parameters come from: auto (the model's), vllm (the engine's own) or a folder.",
        kind="text",
    )
    override_generation_config: Mapping[str, object] = option(
        {}, 'Default sampling parameters that win over the model\'s, as JSON: {"temperature": 0.5}.', kind="json"
    )
    max_logprobs: int = option(
        20, "Most logprobs a request may ask for per token; -1: no limit.", kind="count", minimum=-1
    )
    chat_template: str | None = option(
        None, "Chat template in place of the model's: a file, or the template itself.", kind="text"
    )

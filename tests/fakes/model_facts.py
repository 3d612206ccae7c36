"""Facts of models and machines for tests of configuration: plain values, no files."""

from octavo.config.machine import MachineFacts
from octavo.config.model_spec import ModelSpec, RopeSpec
from octavo.config.resolved import ModelFacts

GIB = 2**30


def llama_facts(**changes) -> ModelFacts:
    """The shapes of SmolLM2-135M: 23,040 bytes of KV a token in bfloat16."""
    shapes = {
        "model_type": "llama",
        "vocab_size": 49152,
        "hidden_size": 576,
        "intermediate_size": 1536,
        "num_layers": 30,
        "num_heads": 9,
        "num_kv_heads": 3,
        "head_dim": 64,
        "max_position": 8192,
        "norm_eps": 1e-5,
        "rope": RopeSpec(theta=1e5),
        "layer_kinds": ("full",) * 30,
        "attention_scale": 0.125,
        "checkpoint_dtype": "bfloat16",
    }
    spec = ModelSpec(**{**shapes, **changes})
    return ModelFacts(spec=spec, weight_bytes={"float32": 540_000_000, "bfloat16": 270_000_000}, file_format="gguf")


def machine_facts(*, available_bytes: int = 8 * GIB, **changes) -> MachineFacts:
    """A machine with native kernels and every instruction set."""
    facts = {
        "num_cores": 2,
        "memory_total_bytes": 16 * GIB,
        "memory_available_bytes": available_bytes,
        "isa_levels": ("scalar", "avx2", "avx512", "avx512_bf16", "amx"),
        "kernel_backends": ("reference", "cpu"),
    }
    return MachineFacts(**{**facts, **changes})

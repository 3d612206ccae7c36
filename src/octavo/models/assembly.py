"""The parts that model files are put together from, loaded under Hugging Face's usual names.

Owns: usual names of tensors, rotary tables, load progress.   Does not own: the arrangement (the file of a model_type).
"""

from __future__ import annotations

from collections.abc import Callable

from octavo.attention.params import attention_params
from octavo.kernels.ops import OpTable
from octavo.layers.decoder_layer import DecoderLayer, PreNormLayer
from octavo.layers.mlp import GatedMlp
from octavo.layers.norm import RmsNorm
from octavo.layers.rope import rope_table
from octavo.layers.self_attention import HeadNorm, SelfAttention, load_projections
from octavo.layers.weights import Checkpoint, WeightReader
from octavo.models.decoder import Decoder
from octavo.proto.kv import deal_layers

Progress = Callable[[int, int], None]
"""Called with (parts loaded, parts in all) after each layer and after the rest."""


class Assembly:
    """One model being loaded. norm_add: what is added to every norm weight (Gemma stores w and means 1 + w)."""

    def __init__(
        self, checkpoint: Checkpoint, ops: OpTable, max_model_len: int, progress: Progress | None = None
    ) -> None:
        self.spec = checkpoint.spec
        self._ops = ops
        self._reader = WeightReader(checkpoint, ops)
        self._progress = progress
        self._rope = rope_table(self.spec.rope, self.spec.head_dim, max_model_len)
        self._rope_local = self._rope
        if self.spec.rope_local is not None:
            self._rope_local = rope_table(self.spec.rope_local, self.spec.head_dim, max_model_len)

    def norm(self, name: str, *, norm_add: float = 0.0) -> RmsNorm:
        """The norm over the hidden state whose weight is `{name}.weight`."""
        weight = self._reader.vector(f"{name}.weight", self.spec.hidden_size, add=norm_add)
        return RmsNorm(self._ops, weight, self.spec.norm_eps)

    def attention(self, layer: int, *, norm_add: float = 0.0) -> SelfAttention:
        """Block `self_attn` of a layer: biases and norms of the heads as the spec says, rotary table by its kind."""
        spec, name = self.spec, f"model.layers.{layer}.self_attn"
        head_norm = None
        if spec.qk_norm:
            q, k = (
                self._reader.vector(f"{name}.{part}_norm.weight", spec.head_dim, add=norm_add) for part in ("q", "k")
            )
            head_norm = HeadNorm(q=q, k=k, eps=spec.norm_eps)
        qkv, out = load_projections(self._ops, self._reader, spec, name)
        return SelfAttention(
            ops=self._ops,
            layer=layer,
            params=attention_params(spec, layer),
            rope=self._rope_local if spec.layer_kinds[layer] == "sliding_window" else self._rope,
            qkv=qkv,
            out=out,
            head_norm=head_norm,
        )

    def mlp(self, layer: int) -> GatedMlp:
        """Block `mlp` of a layer."""
        return GatedMlp.load(self._ops, self._reader, self.spec, f"model.layers.{layer}.mlp")

    def pre_norm_layer(self, layer: int) -> PreNormLayer:
        """The layer of Llama and of those that kept its names."""
        name = f"model.layers.{layer}"
        return PreNormLayer(
            attention_norm=self.norm(f"{name}.input_layernorm"),
            attention=self.attention(layer),
            mlp_norm=self.norm(f"{name}.post_attention_layernorm"),
            mlp=self.mlp(layer),
        )

    def decoder(self, load_layer: Callable[[int], DecoderLayer], *, norm_add: float = 0.0) -> Decoder:
        """The whole model, its layers loaded in order. The head is `lm_head.weight`, or the embedding where tied."""
        spec = self.spec
        num_parts = spec.num_layers + 1
        vocabulary = (spec.vocab_size, spec.hidden_size)
        layers = []
        for layer in range(spec.num_layers):
            layers.append(load_layer(layer))
            self._report(layer + 1, num_parts)
        embedding = self._reader.table("model.embed_tokens.weight", *vocabulary)
        head = embedding if spec.tie_word_embeddings else self._reader.table("lm_head.weight", *vocabulary)
        final_norm = self.norm("model.norm", norm_add=norm_add)
        self._report(num_parts, num_parts)
        return Decoder(
            ops=self._ops,
            spec=spec,
            kv_groups=deal_layers(spec.layer_kinds, spec.sliding_window),
            embedding=embedding,
            layers=tuple(layers),
            final_norm=final_norm,
            head=head,
        )

    def _report(self, num_done: int, num_parts: int) -> None:
        if self._progress is not None:
            self._progress(num_done, num_parts)

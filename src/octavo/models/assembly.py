"""The parts that model files are put together from, loaded under Hugging Face's usual names.

Owns: usual names of tensors, rotary tables, load progress.   Does not own: the arrangement (the file of a model_type).
"""

from __future__ import annotations

from collections.abc import Callable

from octavo.attention.params import attention_params
from octavo.kernels.ops import AttentionBlock, DecoderLayer, FeedForwardBlock, OpTable, Tensor
from octavo.layers.norm import RmsNorm
from octavo.layers.rope import rope_table
from octavo.layers.weights import Checkpoint, Columns, WeightReader
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

    def norm_weight(self, name: str, *, norm_add: float = 0.0) -> Tensor:
        """The weight `{name}.weight` of a norm over the hidden state."""
        return self._reader.vector(f"{name}.weight", self.spec.hidden_size, add=norm_add)

    def attention(self, layer: int, *, norm_add: float = 0.0) -> AttentionBlock:
        """The layer up to its attention: biases and norms of the heads as the spec says, rotary table by its kind."""
        spec, name = self.spec, f"model.layers.{layer}"
        q_norm = k_norm = None
        if spec.qk_norm:
            q_norm, k_norm = (
                self._reader.vector(f"{name}.self_attn.{part}_norm.weight", spec.head_dim, add=norm_add)
                for part in ("q", "k")
            )
        q_size, kv_size = spec.num_heads * spec.head_dim, spec.num_kv_heads * spec.head_dim
        qkv = [
            Columns(f"{name}.self_attn.{part}_proj", size, spec.attention_bias)
            for part, size in (("q", q_size), ("k", kv_size), ("v", kv_size))
        ]
        return AttentionBlock(
            layer=layer,
            norm=self.norm_weight(f"{name}.input_layernorm", norm_add=norm_add),
            qkv=self._reader.matrix(qkv, spec.hidden_size),
            rope=self._rope_local if spec.layer_kinds[layer] == "sliding_window" else self._rope,
            params=attention_params(spec, layer),
            eps=spec.norm_eps,
            q_norm=q_norm,
            k_norm=k_norm,
        )

    def feed_forward(
        self,
        layer: int,
        *,
        norm: str,
        norm_add: float = 0.0,
        attention_post: str | None = None,
        post: str | None = None,
    ) -> FeedForwardBlock:
        """The layer behind its attention. norm, attention_post, post: names of its norms, within the layer."""
        spec, name = self.spec, f"model.layers.{layer}"
        out = Columns(f"{name}.self_attn.o_proj", spec.hidden_size, spec.attention_out_bias)
        gate, up = (
            Columns(f"{name}.mlp.{part}_proj", spec.intermediate_size, spec.mlp_bias) for part in ("gate", "up")
        )
        down = Columns(f"{name}.mlp.down_proj", spec.hidden_size, spec.mlp_bias)
        post_norms = {
            place: None if own is None else self.norm_weight(f"{name}.{own}", norm_add=norm_add)
            for place, own in (("attention_post_norm", attention_post), ("post_norm", post))
        }
        return FeedForwardBlock(
            out=self._reader.matrix([out], spec.num_heads * spec.head_dim),
            norm=self.norm_weight(f"{name}.{norm}", norm_add=norm_add),
            gate_up=self._reader.gated(gate, up, spec.hidden_size),
            activation=spec.activation,
            down=self._reader.matrix([down], spec.intermediate_size),
            eps=spec.norm_eps,
            **post_norms,
        )

    def pre_norm_layer(self, layer: int) -> DecoderLayer:
        """The layer of Llama and of those that kept its names: x + attention(norm(x)), then x + mlp(norm(x))."""
        return DecoderLayer(
            attention=self.attention(layer),
            feed_forward=self.feed_forward(layer, norm="post_attention_layernorm"),
        )

    def sandwich_layer(self, layer: int, *, norm_add: float) -> DecoderLayer:
        """The layer of Gemma 2 and 3: x + norm(attention(norm(x))), then x + norm(mlp(norm(x)))."""
        feed_forward = self.feed_forward(
            layer,
            norm="pre_feedforward_layernorm",
            norm_add=norm_add,
            attention_post="post_attention_layernorm",
            post="post_feedforward_layernorm",
        )
        return DecoderLayer(attention=self.attention(layer, norm_add=norm_add), feed_forward=feed_forward)

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
        final_norm = RmsNorm(self._ops, self.norm_weight("model.norm", norm_add=norm_add), spec.norm_eps)
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

"""GGUF files made by hand, byte for byte, so that every field of them can be wrong.

GgufBuilder().add("general.architecture", STRING, "llama").add_tensor("x.weight", (2, 3), F32, data).build()
tiny_llama_gguf() -> a builder of a whole model with a byte-level tokenizer
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

import numpy as np

from octavo.loading.tokenizer import byte_level_alphabet

UINT32, INT32, FLOAT32, BOOL, STRING, ARRAY, UINT64 = 4, 5, 6, 7, 8, 9, 10
F32 = 0
CONTROL, NORMAL = 3, 1

_LAYOUTS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}


def pack_string(text: str | bytes) -> bytes:
    raw = text.encode() if isinstance(text, str) else text
    return struct.pack("<Q", len(raw)) + raw


def pack_value(kind: int, value) -> bytes:
    """Arrays are given as (item kind, values)."""
    if kind == STRING:
        return pack_string(value)
    if kind == ARRAY:
        item_kind, values = value
        packed = b"".join(pack_value(item_kind, item) for item in values)
        return struct.pack("<IQ", item_kind, len(values)) + packed
    return struct.pack(_LAYOUTS[kind], value)


@dataclass
class TensorEntry:
    """`dims` innermost first, as in the file."""

    name: str | bytes
    dims: tuple[int, ...]
    kind: int
    data: bytes
    offset: int | None = None
    num_dims: int | None = None

    def pack(self, offset: int) -> bytes:
        num_dims = len(self.dims) if self.num_dims is None else self.num_dims
        dims = struct.pack(f"<{len(self.dims)}Q", *self.dims)
        offset = offset if self.offset is None else self.offset
        return pack_string(self.name) + struct.pack("<I", num_dims) + dims + struct.pack("<IQ", self.kind, offset)


@dataclass
class GgufBuilder:
    """What the fields are; `build` lays them out. Counts are the true ones unless set."""

    magic: bytes = b"GGUF"
    version: int = 3
    alignment: int = 32
    num_tensors: int | None = None
    num_entries: int | None = None
    entries: list[tuple[str | bytes, int, object]] = field(default_factory=list)
    raw_entries: bytes = b""
    tensors: list[TensorEntry] = field(default_factory=list)

    def add(self, key: str, kind: int, value) -> GgufBuilder:
        """Replaces an entry of that name."""
        self.entries = [entry for entry in self.entries if entry[0] != key]
        self.entries.append((key, kind, value))
        return self

    def drop(self, key: str) -> GgufBuilder:
        self.entries = [entry for entry in self.entries if entry[0] != key]
        return self

    def add_tensor(self, name, dims, kind=F32, data=None, **fields) -> GgufBuilder:
        """Replaces a tensor of that name; float32 zeros by default."""
        self.drop_tensor(name)
        data = bytes(4 * int(np.prod(dims))) if data is None else data
        self.tensors.append(TensorEntry(name, tuple(dims), kind, data, **fields))
        return self

    def drop_tensor(self, name) -> GgufBuilder:
        self.tensors = [tensor for tensor in self.tensors if tensor.name != name]
        return self

    def build(self) -> bytes:
        num_entries = len(self.entries) if self.num_entries is None else self.num_entries
        num_tensors = len(self.tensors) if self.num_tensors is None else self.num_tensors
        head = self.magic + struct.pack("<IQQ", self.version, num_tensors, num_entries)
        for key, kind, value in self.entries:
            head += pack_string(key) + struct.pack("<I", kind) + pack_value(kind, value)
        head += self.raw_entries
        offset, data = 0, b""
        for tensor in self.tensors:
            head += tensor.pack(offset)
            data += tensor.data + bytes(-len(tensor.data) % self.alignment)
            offset = len(data)
        return head + bytes(-len(head) % self.alignment) + data

    def write(self, path):
        path.write_bytes(self.build())
        return path


HIDDEN, HEADS, KV_HEADS, HEAD_DIM, FEED_FORWARD, VOCAB = 32, 4, 2, 8, 64, 260


def byte_level_pieces() -> list[str]:
    """Three control tokens, the 256 bytes, and one merge."""
    alphabet = byte_level_alphabet()
    return ["<|end|>", "<|im_start|>", "<|im_end|>", *sorted(alphabet, key=lambda char: alphabet[char]), "he"]


def tiny_llama_gguf(architecture: str = "llama", seed: int = 0) -> GgufBuilder:
    """One layer of random float32 weights."""
    rng = np.random.default_rng(seed)
    builder = GgufBuilder()
    builder.add("general.architecture", STRING, architecture)
    for key, value in {
        "block_count": 1,
        "context_length": 64,
        "embedding_length": HIDDEN,
        "feed_forward_length": FEED_FORWARD,
        "attention.head_count": HEADS,
        "attention.head_count_kv": KV_HEADS,
    }.items():
        builder.add(f"{architecture}.{key}", UINT32, value)
    builder.add(f"{architecture}.attention.layer_norm_rms_epsilon", FLOAT32, 1e-5)
    add_tokenizer(builder)
    shapes = {"token_embd": (VOCAB, HIDDEN), "output_norm": (HIDDEN,)}
    widths = {"attn_q": HEADS * HEAD_DIM, "attn_k": KV_HEADS * HEAD_DIM, "attn_v": KV_HEADS * HEAD_DIM}
    widths |= {"attn_output": HIDDEN, "ffn_gate": FEED_FORWARD, "ffn_up": FEED_FORWARD}
    shapes |= {f"blk.0.{name}": (width, HIDDEN) for name, width in widths.items()}
    shapes |= {"blk.0.ffn_down": (HIDDEN, FEED_FORWARD), "blk.0.attn_norm": (HIDDEN,), "blk.0.ffn_norm": (HIDDEN,)}
    for name, shape in shapes.items():
        values = rng.standard_normal(shape).astype(np.float32)
        builder.add_tensor(f"{name}.weight", shape[::-1], F32, values.tobytes())
    return builder


def add_tokenizer(builder: GgufBuilder) -> None:
    """The keys of a byte-level tokenizer."""
    pieces = byte_level_pieces()
    builder.add("tokenizer.ggml.model", STRING, "gpt2")
    builder.add("tokenizer.ggml.pre", STRING, "smollm")
    builder.add("tokenizer.ggml.tokens", ARRAY, (STRING, pieces))
    builder.add("tokenizer.ggml.token_type", ARRAY, (INT32, [CONTROL] * 3 + [NORMAL] * (len(pieces) - 3)))
    builder.add("tokenizer.ggml.merges", ARRAY, (STRING, ["h e"]))
    builder.add("tokenizer.ggml.bos_token_id", UINT32, 1)
    builder.add("tokenizer.ggml.eos_token_id", UINT32, 2)
    builder.add("tokenizer.ggml.add_bos_token", BOOL, False)
    builder.add("tokenizer.chat_template", STRING, "{% for m in messages %}{{ m.content }}{% endfor %}")

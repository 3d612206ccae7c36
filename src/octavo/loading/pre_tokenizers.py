"""How byte-level BPE vocabularies cut text into words before merging, by the name GGUF files give it.

Owns: the table `tokenizer.ggml.pre` -> rules. A name that is not here is refused: a near miss would give a model
other tokens than it was trained on. The patterns are the published ones of the models named.
"""

from __future__ import annotations

from dataclasses import dataclass

from tokenizers import Regex, normalizers, pre_tokenizers

_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|%s| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_QWEN2 = _WORDS % r"\p{N}"
_LLAMA3 = _WORDS % r"\p{N}{1,3}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BpeRules:
    """One way to cut. `pattern` None: GPT-2's own pattern."""

    pattern: str | None = None
    single_digits: bool = False
    """Each digit is a word of its own, before anything else."""
    is_nfc: bool = False
    """Text is composed to NFC first."""
    ignore_merges: bool = False
    """A word that is a piece is taken whole."""
    adds_bos: bool = False
    """Default when the file does not say."""

    def pre_tokenizer(self) -> pre_tokenizers.PreTokenizer:
        """The cutter of the `tokenizers` package."""
        steps: list[pre_tokenizers.PreTokenizer] = []
        if self.single_digits:
            steps.append(pre_tokenizers.Digits(individual_digits=True))
        if self.pattern is not None:
            steps.append(pre_tokenizers.Split(Regex(self.pattern), behavior="isolated"))
        steps.append(pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=self.pattern is None))
        return pre_tokenizers.Sequence(steps)

    def normalizer(self) -> normalizers.Normalizer | None:
        return normalizers.NFC() if self.is_nfc else None


_SMOLLM = BpeRules(single_digits=True)
_QWEN = BpeRules(pattern=_QWEN2, is_nfc=True)
_LLAMA_BPE = BpeRules(pattern=_LLAMA3, ignore_merges=True, adds_bos=True)

BPE_RULES: dict[str, BpeRules] = {
    "gpt-2": BpeRules(),
    "smollm": _SMOLLM,
    "qwen2": _QWEN,
    "deepseek-r1-qwen": _QWEN,
    "llama-bpe": _LLAMA_BPE,
    "llama3": _LLAMA_BPE,
    "llama-v3": _LLAMA_BPE,
}
"""`tokenizer.ggml.pre` -> rules."""

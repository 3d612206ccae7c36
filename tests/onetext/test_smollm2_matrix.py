"""One text, the full matrix: 40 mixed requests on SmolLM2 in bfloat16, alone and in batches of 64 on every path.

At the best level of this processor. Where that has no matrix unit, some paths at level amx too, around an emulated one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from fakes.mixed_requests import MixedRequest
from fakes.one_text_matrix import NUM_REQUESTS, Path, assert_same_text, generate_alone, mixed_requests

from octavo import _native
from octavo.kernels import dispatch

pytestmark = [pytest.mark.needs_smollm2, pytest.mark.slow]

World = tuple[str, list[MixedRequest], dict[str, Any]]
"""(path, requests, their outputs alone)"""

PATHS = [
    Path(chunk=16, depth=1, threads=2),
    Path(chunk=16, depth=3, threads=1),
    Path(chunk=64, depth=2, threads=1, caches=False),
    Path(chunk=64, depth=3, threads=2),
    Path(chunk=512, depth=1, threads=1),
    Path(chunk=512, depth=2, threads=2, caches=False),
    Path(chunk=512, depth=3, threads=2),
    Path(chunk=64, depth=2, threads=2, num_blocks=48),
    Path(chunk=512, depth=1, threads=2, caches=False, num_blocks=40),
]
AMX_PATHS = [
    Path(chunk=16, depth=3, threads=1),
    Path(chunk=64, depth=2, threads=2, num_blocks=48),
    Path(chunk=512, depth=2, threads=2, caches=False),
]
EMULATED = "amx_emulated"


def make_world(smollm2_path) -> World:
    requests = mixed_requests()
    assert len(requests) == NUM_REQUESTS
    return str(smollm2_path), requests, generate_alone(str(smollm2_path), requests)


@pytest.fixture(scope="module")
def world(smollm2_path) -> World:
    return make_world(smollm2_path)


@pytest.mark.parametrize("path", PATHS, ids=str)
def test_no_path_changes_a_bit(world: World, path: Path) -> None:
    model, requests, alone = world
    assert_same_text(model, path, requests, alone)


@pytest.fixture(scope="module")
def emulated_level() -> Iterator[list[str]]:
    """Every back end made meanwhile is of the emulated level, which no option can ask for. The levels made so far."""
    levels: list[str] = []
    make_ops = dispatch.make_ops

    def make_emulated(*args, isa: str, **kwargs):
        ops = make_ops(*args, isa=EMULATED, **kwargs)
        levels.append(ops.isa)
        return ops

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dispatch, "make_ops", make_emulated)
        yield levels


@pytest.fixture(scope="module")
def emulated_world(smollm2_path, emulated_level: list[str]) -> World:
    return make_world(smollm2_path)


@pytest.mark.timeout(900)
@pytest.mark.skipif(EMULATED not in _native.test_isa_levels(), reason="the emulation needs AVX-512 BF16")
@pytest.mark.skipif("amx" in _native.runnable_isa_levels(), reason="the unit itself is tested above")
@pytest.mark.parametrize("path", AMX_PATHS, ids=str)
def test_no_path_changes_a_bit_with_the_matrix_units_arithmetic(
    emulated_world: World, emulated_level: list[str], path: Path
) -> None:
    model, requests, alone = emulated_world
    assert_same_text(model, path, requests, alone)
    assert len(emulated_level) >= 2
    assert set(emulated_level) == {EMULATED}

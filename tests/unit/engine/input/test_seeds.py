from __future__ import annotations

from octavo.engine.input.seeds import derive_child_seed, derive_request_seed


def test_the_first_child_has_the_seed_itself():
    assert derive_child_seed(42, 0) == 42


def test_children_and_requests_do_not_share_seeds():
    seeds = {derive_child_seed(0, index) for index in range(100)} | {derive_request_seed(0, i) for i in range(100)}
    assert len(seeds) == 200


def test_seeds_are_64_bits_and_repeatable():
    assert derive_child_seed(-1, 0) == 2**64 - 1
    assert all(0 <= derive_request_seed(7, i) < 2**64 for i in range(20))
    assert derive_request_seed(7, 3) == derive_request_seed(7, 3) != derive_request_seed(8, 3)

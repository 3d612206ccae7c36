from hypothesis import given
from hypothesis import strategies as st

from octavo.proto.kv import KvCacheSpec, KvGroup, deal_layers, peak_blocks


def test_layers_of_one_kind_make_one_group():
    groups = deal_layers(["full"] * 30, None)
    assert [group.layers for group in groups] == [tuple(range(30))]


def test_gemma_layers_are_dealt_into_six_groups_of_three():
    kinds = ["full" if layer % 6 == 5 else "sliding_window" for layer in range(18)]
    groups = deal_layers(kinds, 512)
    assert [group.kind for group in groups] == ["full"] + ["sliding_window"] * 5
    assert groups[0].layers == (5, 11, 17)
    assert all(len(group.layers) == 3 for group in groups)
    assert sorted(layer for group in groups for layer in group.layers) == list(range(18))


def test_only_window_groups_carry_the_window():
    groups = deal_layers(["full", "sliding_window"], 8)
    assert [group.window for group in groups] == [None, 8]


def test_a_short_group_is_padded_to_the_page_of_the_largest():
    groups = deal_layers(["full", "full", "sliding_window", "sliding_window", "sliding_window"], 4)
    spec = KvCacheSpec(groups=groups, block_size=16, num_blocks=8, num_kv_heads=2, head_dim=4, dtype="bfloat16")
    assert sorted(len(group.layers) for group in groups) == [1, 2, 2]
    assert spec.layers_per_page == 2
    assert spec.page_bytes == 2 * 2 * 2 * 16 * 4 * 2


def test_no_layers_make_no_groups():
    assert deal_layers([], None) == ()


def test_window_layers_take_no_more_than_window_and_chunk():
    groups = deal_layers(["full"] * 3 + ["sliding_window"] * 15, 512)
    assert len(groups) == 6
    short = peak_blocks(groups, 64, block_size=32, max_chunk=64)
    long = peak_blocks(groups, 32768, block_size=32, max_chunk=64)
    assert short == 6 * 2
    assert long == 1024 + 5 * 19  # window - 1 + chunk = 575 tokens touch at most 19 blocks


def test_without_chunks_window_layers_take_the_whole_prompt():
    groups = deal_layers(["sliding_window"] * 4, 64)
    assert peak_blocks(groups, 4096, block_size=32, max_chunk=None) == 128


def test_a_recurrent_group_holds_the_state_it_reads_and_the_one_it_writes():
    groups = (KvGroup(kind="recurrent", layers=(0,)),)
    lengths = (1, 32, 33, 999)
    assert [peak_blocks(groups, length, block_size=32, max_chunk=64) for length in lengths] == [1, 1, 2, 2]


@given(num_tokens=st.integers(1, 5000), window=st.integers(1, 600), max_chunk=st.integers(1, 600))
def test_smaller_chunks_never_need_more_blocks(num_tokens, window, max_chunk):
    groups = deal_layers(["full", "sliding_window"], window)
    peaks = [
        peak_blocks(groups, num_tokens, block_size=32, max_chunk=most) for most in (max_chunk, max_chunk + 1, None)
    ]
    assert peaks == sorted(peaks)

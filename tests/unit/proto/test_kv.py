from octavo.proto.kv import KvCacheSpec, deal_layers


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

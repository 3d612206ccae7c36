from octavo.loading.spm_merges import rebuild_merges


def rebuild(pieces):
    vocab = {piece: idx for idx, (piece, _) in enumerate(pieces)}
    return rebuild_merges(vocab, pieces)


def test_merges_follow_the_score_of_the_whole():
    assert rebuild([("a", 0), ("b", 0), ("ab", -2), ("ba", -1)]) == [("b", "a"), ("a", "b")]


def test_among_equals_long_left_parts_come_first():
    merges = rebuild([("a", 0), ("b", 0), ("aa", -5), ("ab", -5), ("aab", -1)])
    assert merges == [("aa", "b"), ("a", "ab"), ("a", "a"), ("a", "b")]


def test_only_cuts_into_pieces_count():
    assert rebuild([("a", 0), ("abc", -1), ("bc", -1)]) == [("a", "bc")]


def test_pieces_beyond_the_bound_are_not_cut():
    pieces = [("a" * size, -float(size)) for size in (1, 2, 300)]
    assert rebuild_merges({piece: idx for idx, (piece, _) in enumerate(pieces)}, pieces) == [("a", "a")]

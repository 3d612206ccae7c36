"""Merges of a SentencePiece BPE vocabulary, which files of that kind do not hold, out of its pieces and scores.

Every way to cut a piece into two existing pieces is a merge; their order is by the score of the whole (high first),
then by the length of the left part, then of the right part (long first). Ties stay in the order of the pieces, and
within a piece in the order of its parts' ids.
Source: the conversion of SentencePiece models to merge lists, compared with Gemma's published merges.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def rebuild_merges(
    vocab: Mapping[str, int], pieces: Sequence[tuple[str, float]], max_piece_chars: int = 256
) -> list[tuple[str, str]]:
    """`pieces` are those that merging may produce, with their scores. Cost: their characters; no quadratic term.

    Pieces longer than `max_piece_chars` are not cut: no text reaches them, and damaged files stay cheap.
    """
    merges: list[tuple[float, int, int, str, str]] = []
    get = vocab.get
    for piece, score in pieces:
        size = len(piece)
        if not 1 < size <= max_piece_chars:
            continue
        cuts = []
        for cut in range(1, size):
            left = get(piece[:cut])
            if left is not None:
                right = get(piece[cut:])
                if right is not None:
                    cuts.append((left, right, cut))
        if len(cuts) > 1:
            cuts.sort()
        merges.extend((-score, -cut, cut - size, piece[:cut], piece[cut:]) for _, _, cut in cuts)
    merges.sort(key=lambda merge: merge[:3])
    return [(left, right) for _, _, _, left, right in merges]

"""Gumbel noise for sampling, a pure function of (seed, position, token id).

Owns: the generator and the way its bits become noise.   Does not own: what the noise is added to.
Invariant: the noise of a token does not depend on which other tokens are asked for, nor on the batch.
Source: Philox4x32-10, Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", SC'11.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint32]

_MULTIPLIER_0 = np.uint64(0xD2511F53)
_MULTIPLIER_1 = np.uint64(0xCD9E8D57)
_KEY_STEP_0 = 0x9E3779B9
_KEY_STEP_1 = 0xBB67AE85
_NUM_ROUNDS = 10
_MASK_32 = 0xFFFFFFFF


def philox4x32(counter: Words, key: tuple[int, int]) -> Words:
    """Encrypt counters [N, 4] uint32 with one key of two 32-bit words -> [N, 4] uint32."""
    word_0, word_1, word_2, word_3 = (np.ascontiguousarray(counter[:, lane]) for lane in range(4))
    key_0, key_1 = key
    for _ in range(_NUM_ROUNDS):
        product_0 = _MULTIPLIER_0 * word_0.astype(np.uint64)
        product_1 = _MULTIPLIER_1 * word_2.astype(np.uint64)
        word_0 = (product_1 >> np.uint64(32)).astype(np.uint32) ^ word_1 ^ np.uint32(key_0)
        word_1 = product_1.astype(np.uint32)
        word_2 = (product_0 >> np.uint64(32)).astype(np.uint32) ^ word_3 ^ np.uint32(key_1)
        word_3 = product_0.astype(np.uint32)
        key_0 = (key_0 + _KEY_STEP_0) & _MASK_32
        key_1 = (key_1 + _KEY_STEP_1) & _MASK_32
    return np.stack((word_0, word_1, word_2, word_3), axis=1)


def uniform_noise(seed: int, position: int, token_ids: npt.NDArray[np.integer]) -> npt.NDArray[np.float32]:
    """One number in (0, 1) per token id [N] -> [N] float32.

    Key: the two halves of the 64-bit seed. Counter: (id // 4, position's low half, its high half, 0); the token
    takes lane id % 4. The top 23 bits plus one half, times 2**-23, so that neither 0 nor 1 can occur.
    """
    blocks, block_of_token = np.unique(token_ids >> 2, return_inverse=True)
    counter = np.zeros((len(blocks), 4), np.uint32)
    counter[:, 0] = blocks
    counter[:, 1] = position & _MASK_32
    counter[:, 2] = position >> 32
    words = philox4x32(counter, (seed & _MASK_32, seed >> 32))
    bits = words[block_of_token, token_ids & 3]
    return np.asarray(((bits >> np.uint32(9)).astype(np.float32) + np.float32(0.5)) * np.float32(2.0**-23))


def gumbel_noise(seed: int, position: int, token_ids: npt.NDArray[np.integer]) -> npt.NDArray[np.float32]:
    """Standard Gumbel noise per token id [N] -> [N] float32: -log(-log(u)).

    seed: 0 .. 2**64 - 1. position: absolute position of the token that is sampled, 0 .. 2**63 - 1.
    """
    return np.asarray(-np.log(-np.log(uniform_noise(seed, position, token_ids))), np.float32)

import math

from octavo.outputs import Logprob
from octavo.server.api.logprobs import LOWEST, TokenNames, chat_logprobs, completion_logprobs, prompt_logprobs


class Letters:
    """Token i is the i-th letter; 9 is half of a character."""

    def id_to_bytes(self, token_id):
        return b"\xc3" if token_id == 9 else bytes([97 + token_id])

    def token_text(self, token_id):
        return self.id_to_bytes(token_id).decode(errors="replace")


NAMES = TokenNames(Letters(), as_ids=False)


def position(*entries):
    return {token_id: Logprob(value, rank, Letters().token_text(token_id)) for token_id, value, rank in entries}


def test_offsets_go_on_from_chunk_to_chunk():
    first, offset = completion_logprobs([0, 1], [position((0, -1, 1)), position((1, -2, 1))], NAMES, offset=3)
    second, _ = completion_logprobs([2], [position((2, -1, 1))], NAMES, offset=offset)
    assert first.text_offset + second.text_offset == [3, 4, 5]


def test_the_first_token_of_a_prompt_has_no_logprob():
    lists, _ = completion_logprobs([0], [None], NAMES, offset=0)
    assert (lists.token_logprobs, lists.top_logprobs, lists.tokens) == ([None], [None], ["a"])


def test_infinity_is_written_as_a_number():
    lists, _ = completion_logprobs([0], [position((0, -math.inf, 5))], NAMES, offset=0)
    assert lists.token_logprobs == [LOWEST]
    assert prompt_logprobs([None, position((0, -math.inf, 5))])[1]["0"].logprob == LOWEST


def test_of_two_tokens_of_one_name_the_more_probable_is_kept():
    both = {9: Logprob(-3, 2, "\ufffd"), 5: Logprob(-1, 1, "\ufffd")}
    lists, _ = completion_logprobs([9], [both], NAMES, offset=0)
    assert lists.top_logprobs == [{"\ufffd": -1}]


def test_the_best_of_a_chat_are_in_order_and_a_sampled_token_outside_is_not_one_of_them():
    entry = chat_logprobs([7], [position((7, -9, 40), (1, -0.5, 1), (2, -1, 2))], NAMES, num_top=2).content[0]
    assert (entry.token, entry.bytes) == ("h", [104])
    assert [best.token for best in entry.top_logprobs] == ["b", "c"]


def test_bytes_are_the_tokens_own_also_within_a_character():
    entry = chat_logprobs([9], [position((9, -1, 1))], NAMES, num_top=0).content[0]
    assert (entry.token, entry.bytes, entry.top_logprobs) == ("\ufffd", [0xC3], [])


def test_tokens_may_be_named_by_id():
    names = TokenNames(Letters(), as_ids=True)
    lists, _ = completion_logprobs([3], [position((3, -1, 1))], names, offset=0)
    assert lists.tokens == ["token_id:3"]

import numpy as np
import pytest
from fakes.grammar_tokenizer import CALL, CALL_END, EOS_TEXT, eos_id, make_tokenizer
from fakes.matching import mask_of, start


def write(matcher, *, jumps, rng):
    """A whole text of tokens that the masks admit, with what is forced taken at once or not."""
    written = []
    while True:
        admitted = mask_of(matcher)
        if matcher.is_complete:
            return written
        tokens = [int(rng.choice(admitted))]
        matcher.accept(tokens)
        forced = matcher.forced_tokens() if jumps else []
        matcher.accept(forced)
        written += [*tokens, *forced]


@pytest.mark.parametrize("name", [EOS_TEXT, CALL, CALL_END, EOS_TEXT + EOS_TEXT, f"{CALL} and {EOS_TEXT}"])
@pytest.mark.parametrize("kind", ["choice", "json", "regex", "grammar"])
@pytest.mark.parametrize("around", ["", "a", "city1 "])
def test_text_that_spells_a_special_token_is_written_as_text(name, kind, around):
    text = around + name + around
    constraint = {
        "choice": [text],
        "json": {"const": text},
        "regex": text.replace("|", "[|]"),
        "grammar": f'root ::= "{text}"',
    }[kind]
    rng = np.random.default_rng(5)
    alone = write(start(**{kind: constraint}), jumps=False, rng=rng)
    assert make_tokenizer().decode(alone, skip_special_tokens=False) == (f'"{text}"' if kind == "json" else text)
    assert all(len(make_tokenizer().id_to_token(token_id)) < len(CALL) for token_id in alone)
    assert write(start(**{kind: constraint}), jumps=True, rng=rng) == alone


def test_special_tokens_that_a_grammar_means_stay_tokens():
    form = {"type": "tag", "begin": CALL, "content": {"type": "const_string", "value": "a"}, "end": CALL_END}
    written = write(start(structural_tag={"format": form}), jumps=True, rng=np.random.default_rng(5))
    ids = make_tokenizer()
    assert written == [ids.token_to_id(CALL), ids.token_to_id("a"), ids.token_to_id(CALL_END)]


@pytest.mark.parametrize("jumps", [True, False])
def test_an_end_token_that_a_grammar_means_stays_one(jumps):
    form = {"type": "tag", "begin": CALL + "a", "content": {"type": "const_string", "value": "b"}, "end": EOS_TEXT}
    matcher, written = start(structural_tag={"format": form}), []
    while eos_id() not in written:
        tokens = [int(token_id) for token_id in mask_of(matcher)]
        assert len(tokens) == 1
        tokens += [] if tokens == [eos_id()] or not jumps else matcher.fork().forced_tokens()[1:]
        if tokens[-1] != eos_id():
            matcher.accept(tokens)
        written += tokens
    assert make_tokenizer().decode(written, skip_special_tokens=False) == f"{CALL}ab{EOS_TEXT}"


def test_the_end_stays_the_end():
    matcher = start(choice=["a"])
    matcher.accept([make_tokenizer().token_to_id("a")])
    assert list(mask_of(matcher)) == [eos_id()]

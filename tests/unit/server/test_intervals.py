from octavo.outputs import CompletionOutput
from octavo.server.intervals import ChunkGate


def output(text, num_tokens=1, reason=None):
    return CompletionOutput(index=0, text=text, token_ids=list(range(num_tokens)), finish_reason=reason)


def passed(interval, outputs):
    gate = ChunkGate(interval)
    return [due.text for out in outputs if (due := gate.pass_through(out)) is not None]


def test_an_interval_of_one_changes_nothing():
    assert passed(1, [output("a"), output("b")]) == ["a", "b"]


def test_the_first_token_goes_at_once_and_then_so_many_together():
    texts = [output(letter) for letter in "abcdefg"] + [output("h", reason="length")]
    assert passed(3, texts) == ["a", "bcd", "efg", "h"]


def test_the_end_lets_everything_through():
    assert passed(100, [output("a"), output("b"), output("", 0, "stop")]) == ["a", "b"]
    assert passed(100, [output("a"), output("b"), output("c", reason="stop")]) == ["a", "bc"]

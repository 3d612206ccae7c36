import pytest
from fakes.tool_outputs import RecordedOutput, events_of, random_pieces, recorded_outputs, replay

from octavo.parsers.events import CallArguments, CallBegun, CallEnded, Content, Reasoning, fold

OUTPUTS = recorded_outputs()
each_output = pytest.mark.parametrize("output", OUTPUTS, ids=lambda output: output.name)


def test_there_are_outputs_of_every_format():
    assert len(OUTPUTS) >= 60
    assert {output.options["tool"] for output in OUTPUTS} >= {
        "hermes", "llama3_json", "mistral", "pythonic", "qwen3_coder", "json_call", None,
    }  # fmt: skip


@each_output
def test_an_output_is_read_as_expected(output: RecordedOutput):
    assert replay(output.parser(), [output.text]) == output.expected


@each_output
def test_every_split_into_two_pieces_gives_the_same(output: RecordedOutput):
    for at in range(1, len(output.text)):
        found = replay(output.parser(), [output.text[:at], output.text[at:]])
        assert found == output.expected, f"split before {output.text[at:]!r}"


@each_output
def test_single_characters_and_random_pieces_give_the_same(output: RecordedOutput):
    assert replay(output.parser(), output.text) == output.expected
    for seed in range(5):
        assert replay(output.parser(), random_pieces(output.text, seed)) == output.expected


@each_output
def test_a_text_cut_anywhere_has_one_result(output: RecordedOutput):
    for end in range(len(output.text)):
        text = output.text[:end]
        assert replay(output.parser(), random_pieces(text, end)) == replay(output.parser(), [text]), text


@each_output
def test_what_was_reported_before_the_end_is_never_taken_back(output: RecordedOutput):
    parser, events = output.parser(), []
    for char in output.text:
        events += parser.feed(char)
        shown = fold(events)
        assert output.expected.content.startswith(shown.content)
        assert output.expected.reasoning.startswith(shown.reasoning)
        for now, then in zip(shown.calls, output.expected.calls, strict=False):
            assert now.name == then.name
            assert then.arguments.startswith(now.arguments)


@each_output
def test_events_keep_their_order_and_none_is_empty(output: RecordedOutput):
    num_begun, open_call = 0, None
    for event in events_of(output.parser(), output.text):
        match event:
            case CallBegun(index, name):
                assert index == num_begun
                assert name
                num_begun, open_call = num_begun + 1, index
            case CallArguments(index, text):
                assert index == open_call
                assert text
            case CallEnded(index):
                assert index == open_call
                open_call = None
            case Content(text) | Reasoning(text):
                assert text

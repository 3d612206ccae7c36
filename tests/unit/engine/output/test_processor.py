"""Deltas become outputs of vLLM's shape, whatever the kind and however many deltas come at once."""

from __future__ import annotations

import pytest
from fakes.byte_tokenizer import EOS, BrittleTokenizer, ByteTokenizer, PanicException

from octavo.base.errors import ValidationError
from octavo.engine.input.defaults import EndTokens
from octavo.engine.input.processor import InputProcessor, ModelDefaults
from octavo.engine.input.prompts import Prompt
from octavo.engine.input.validate import RequestLimits
from octavo.engine.output.processor import OutputProcessor
from octavo.outputs import Logprob
from octavo.proto.failure import Failure
from octavo.proto.output import RequestDelta
from octavo.proto.result import TokenLogprobs
from octavo.proto.sampling import RequestOutputKind, SamplingParams

DELTA, FINAL = RequestOutputKind.DELTA, RequestOutputKind.FINAL_ONLY


class Harness:
    """One request in an OutputProcessor, fed with texts."""

    def __init__(self, tokenizer=None, **params):
        self.inputs = inputs = InputProcessor(
            ByteTokenizer(),
            RequestLimits(vocab_size=258, max_model_len=64, max_logprobs=20),
            ModelDefaults(sampling=SamplingParams(), end_tokens=EndTokens(eos=(EOS,))),
            engine_seed=0,
        )
        self.request = inputs.prepare(
            Prompt(token_ids=[1, 2], text="p"), SamplingParams(**params), request_id="r", arrival_s=1.0
        )
        self.processor = OutputProcessor(ByteTokenizer() if tokenizer is None else tokenizer)
        self.processor.add(self.request)
        self.now_s = 1.0

    def add(self, name):
        prompt = Prompt(token_ids=[1, 2], text="p")
        self.processor.add(self.inputs.prepare(prompt, SamplingParams(), request_id=name, arrival_s=1.0))

    def delta(self, text=b"", *, index=0, **fields):
        return RequestDelta(
            request_id=self.request.sequences[index].request_id, epoch=0, token_ids=list(text), **fields
        )

    def process(self, *deltas):
        self.now_s += 1.0
        return self.processor.process(deltas, self.now_s)

    def one(self, *deltas):
        (output,) = self.process(*deltas).outputs
        return output


def test_cumulative_outputs_hold_all_so_far():
    harness = Harness()
    assert harness.one(harness.delta(b"ab")).outputs[0].text == "ab"
    output = harness.one(harness.delta(b"c", finish_reason="length"))
    assert (output.outputs[0].text, output.outputs[0].token_ids) == ("abc", [97, 98, 99])
    assert (output.finished, output.outputs[0].finish_reason, output.outputs[0].finished()) == (True, "length", True)
    assert (output.request_id, output.prompt, output.prompt_token_ids) == ("r", "p", [1, 2])
    assert harness.processor.num_live == 0


def test_delta_outputs_hold_what_is_new():
    harness = Harness(output_kind=DELTA, logprobs=0)
    entry = TokenLogprobs([97], [-1.0], [1])
    first = harness.one(harness.delta(b"a", logprobs=[entry])).outputs[0]
    second = harness.one(harness.delta(b"b", logprobs=[entry], finish_reason="length")).outputs[0]
    assert [(o.text, o.token_ids, len(o.logprobs)) for o in (first, second)] == [("a", [97], 1), ("b", [98], 1)]
    assert second.cumulative_logprob == -2.0


def test_final_only_gives_one_output_at_the_end():
    harness = Harness(output_kind=FINAL)
    assert harness.process(harness.delta(b"a")).outputs == []
    assert harness.one(harness.delta(b"b", finish_reason="length")).outputs[0].text == "ab"


def test_several_deltas_at_once_come_back_as_one_output():
    harness = Harness(output_kind=DELTA)
    output = harness.one(harness.delta(b"a"), harness.delta(b"b"), harness.delta(b"c"))
    assert output.outputs[0].text == "abc"


@pytest.mark.parametrize(("include", "expected"), [(False, "x"), (True, "xSTOP")])
@pytest.mark.parametrize("cuts", [[b"xSTOPy"], [b"xS", b"TOPy"], [b"x", b"S", b"T", b"O", b"P", b"y"]])
def test_a_stop_string_ends_the_sequence_and_the_engine_is_told(include, expected, cuts):
    harness = Harness(stop=["STOP"], include_stop_str_in_output=include)
    for cut in cuts:
        processed = harness.process(harness.delta(cut))
        if processed.stopped_ids:
            break
    assert processed.stopped_ids == ["r"]
    output = processed.outputs[0].outputs[0]
    assert (output.text, output.finish_reason, output.stop_reason) == (expected, "stop", "STOP")
    assert bytes(output.token_ids) == b"xSTOP"
    assert harness.process(harness.delta(b"late")).outputs == []


def test_a_stop_string_found_with_the_engines_own_end_needs_no_abort():
    harness = Harness(stop=["b"])
    processed = harness.process(harness.delta(b"ab", finish_reason="length"))
    assert processed.stopped_ids == []
    assert (processed.outputs[0].outputs[0].finish_reason, processed.outputs[0].outputs[0].text) == ("stop", "a")


def test_text_held_back_for_a_stop_string_comes_at_the_end():
    harness = Harness(stop=["abc"], output_kind=DELTA)
    texts = [harness.one(harness.delta(b"xab")).outputs[0].text]
    texts.append(harness.one(harness.delta(b"", finish_reason="length")).outputs[0].text)
    assert texts == ["x", "ab"]


def test_stop_strings_wait_for_min_tokens():
    harness = Harness(stop=["a"], min_tokens=2)
    assert harness.process(harness.delta(b"ab")).stopped_ids == []
    processed = harness.process(harness.delta(b"a"))
    assert processed.stopped_ids == ["r"]
    assert processed.outputs[0].outputs[0].text == "ab"


def test_the_stopping_tokens_text_is_left_out_and_its_id_kept():
    harness = Harness(skip_special_tokens=False)
    output = harness.one(
        RequestDelta(request_id="r", epoch=0, token_ids=[97, EOS], finish_reason="stop"),
    ).outputs[0]
    assert (output.text, output.token_ids, output.stop_reason) == ("a", [97, EOS], None)
    harness = Harness(include_stop_str_in_output=True)
    output = harness.one(harness.delta(b"ab", finish_reason="stop", stop_reason=98)).outputs[0]
    assert (output.text, output.stop_reason) == ("ab", 98)


def test_an_incomplete_character_is_flushed_at_the_end():
    harness = Harness(output_kind=DELTA)
    assert harness.one(harness.delta("é".encode()[:1])).outputs[0].text == ""
    assert harness.one(harness.delta(b"", finish_reason="length")).outputs[0].text == "\ufffd"


def test_without_detokenizing_there_is_no_text_and_no_decoded_token():
    harness = Harness(detokenize=False, logprobs=0)
    output = harness.one(harness.delta(b"a", logprobs=[TokenLogprobs([97], [-1.0], [1])])).outputs[0]
    assert (output.text, output.logprobs) == ("", [{97: Logprob(-1.0, 1, None)}])


def test_logprobs_are_keyed_by_token_with_the_sampled_one_first():
    harness = Harness(logprobs=2)
    entry = TokenLogprobs([99, 97, 99], [-2.0, -0.5, -2.0], [2, 1, 2])
    output = harness.one(harness.delta(b"c", logprobs=[entry])).outputs[0]
    assert output.logprobs == [{99: Logprob(-2.0, 2, "c"), 97: Logprob(-0.5, 1, "a")}]
    assert list(output.logprobs[0]) == [99, 97]
    assert output.cumulative_logprob == -2.0


@pytest.mark.parametrize("kind", [RequestOutputKind.CUMULATIVE, DELTA])
def test_prompt_logprobs_start_with_none(kind):
    harness = Harness(prompt_logprobs=0, output_kind=kind)
    entry = TokenLogprobs([2], [-1.0], [3])
    first = harness.one(harness.delta(b"", prompt_logprobs=[entry]))
    assert first.prompt_logprobs == [None, {2: Logprob(-1.0, 3, "\x02")}]
    second = harness.one(harness.delta(b"a"))
    assert second.prompt_logprobs == ([] if kind is DELTA else first.prompt_logprobs)


def test_the_n_sequences_are_merged_by_index_and_finish_together():
    harness = Harness(n=2, seed=1, output_kind=FINAL)
    assert harness.process(harness.delta(b"b", index=1, finish_reason="length")).outputs == []
    output = harness.one(harness.delta(b"a", index=0, finish_reason="stop"))
    assert output.finished
    assert [(o.index, o.finish_reason) for o in output.outputs] == [(0, "stop"), (1, "length")]


def test_streams_of_n_report_each_end_once():
    harness = Harness(n=2, seed=1, output_kind=DELTA)
    ends = []
    for delta in (
        harness.delta(b"a", index=0),
        harness.delta(b"b", index=1, finish_reason="length"),
        harness.delta(b"c", index=0),
        harness.delta(b"d", index=0, finish_reason="length"),
    ):
        ends += [(o.index, o.finish_reason) for o in harness.one(delta).outputs]
    assert ends == [(0, None), (1, "length"), (0, None), (0, "length")]


def test_times_and_cached_tokens_are_reported():
    harness = Harness()
    harness.one(harness.delta(b"a", scheduled_s=1.5, num_cached_tokens=1))
    output = harness.one(harness.delta(b"b", finish_reason="length", scheduled_s=1.5))
    metrics = output.metrics
    assert (metrics.arrival_time, metrics.first_scheduled_time, metrics.first_token_time) == (1.0, 1.5, 2.0)
    assert (metrics.last_token_time, metrics.finished_time) == (3.0, 3.0)
    assert (metrics.time_to_first_token_s, metrics.latency_s, output.num_cached_tokens) == (1.0, 2.0, 1)


def test_errors_and_aborts_end_a_request():
    harness = Harness()
    output = harness.one(harness.delta(b"", finish_reason="error", error=Failure("internal", "non-finite logits")))
    assert (output.outputs[0].finish_reason, output.outputs[0].error) == ("error", "non-finite logits")
    assert output.finished


def test_deltas_of_another_epoch_or_request_change_nothing():
    harness = Harness()
    stale = RequestDelta(request_id="r", epoch=3, token_ids=[97])
    unknown = RequestDelta(request_id="who", epoch=0, token_ids=[97])
    assert harness.process(stale, unknown).outputs == []


def test_an_id_in_use_is_refused_and_a_forgotten_one_is_free_again():
    harness = Harness()
    with pytest.raises(ValidationError, match="request_id"):
        harness.processor.add(harness.request)
    assert harness.processor.sequence_ids() == ["r"]
    harness.processor.forget_all()
    harness.processor.add(harness.request)


FAULTS = pytest.mark.parametrize("fault", [RuntimeError, PanicException])


@FAULTS
@pytest.mark.parametrize("params", [{}, {"stop": ["zz"]}, {"n": 2}])
def test_a_fault_of_the_tokenizer_ends_its_request_and_no_other(fault, params, caplog):
    harness = Harness(BrittleTokenizer(fault), **params)
    harness.add("other")
    other = RequestDelta(request_id="other", epoch=0, token_ids=list(b"fine"), finish_reason="length")
    harness.process(harness.delta(b"ab"))
    processed = harness.process(harness.delta(b"!"), harness.delta(b"c"), other)
    failed, whole = processed.outputs
    assert (failed.request_id, failed.finished, failed.metrics.finished_time) == ("r", True, harness.now_s)
    assert {part.finish_reason for part in failed.outputs} == {"error"}
    assert all("could not be turned into text" in part.error for part in failed.outputs)
    assert (failed.outputs[0].text, failed.outputs[0].token_ids) == ("ab", [97, 98])
    assert (whole.request_id, whole.outputs[0].text, whole.finished) == ("other", "fine", True)
    assert processed.stopped_ids == [sequence.request_id for sequence in harness.request.sequences]
    assert harness.processor.num_live == 0
    assert "index out of bounds" in caplog.text


@FAULTS
def test_a_fault_in_logprobs_leaves_as_many_of_them_as_tokens(fault):
    harness = Harness(BrittleTokenizer(fault), logprobs=1)
    entries = [TokenLogprobs([97, 98], [-1.0, -2.0], [1, 2]), TokenLogprobs([98, 33], [-1.0, -2.0], [1, 2])]
    (part,) = harness.one(harness.delta(b"ab", logprobs=entries)).outputs
    assert (part.finish_reason, part.token_ids, part.logprobs) == ("error", [], [])


def test_a_fault_in_prompt_logprobs_ends_the_request():
    harness = Harness(BrittleTokenizer(RuntimeError), prompt_logprobs=0)
    processed = harness.process(harness.delta(prompt_logprobs=[TokenLogprobs([33], [-0.5], [1])]))
    assert (processed.outputs[0].outputs[0].finish_reason, processed.stopped_ids) == ("error", ["r"])


def test_ctrl_c_while_text_is_made_is_no_fault_of_the_request():
    harness = Harness(BrittleTokenizer(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        harness.process(harness.delta(b"!"))

"""The offline API on a two-layer random model: prompts of all forms, what is refused, what survives an error."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time

import pytest
from fakes.hf_folder import write_hf_folder

import octavo
from octavo import LLM, EngineArgs, SamplingParams
from octavo.base.errors import CapacityError, ConfigError, EngineDeadError, ValidationError

SMALL = {"num_gpu_blocks_override": 40, "max_num_seqs": 8, "max_num_batched_tokens": 64, "block_size": 32}
GREEDY = SamplingParams(temperature=0, max_tokens=6, ignore_eos=True)
LONG = SamplingParams(temperature=0, max_tokens=60, ignore_eos=True)
USER = [{"role": "user", "content": "hello"}]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return str(write_hf_folder(tmp_path_factory.mktemp("models") / "tiny"))


@pytest.fixture(scope="module")
def llm(folder):
    with LLM(model=folder, **SMALL) as llm:
        yield llm


def ids_of(outputs):
    return [output.outputs[0].token_ids for output in outputs]


def stats(llm):
    return llm.engine.front_end.client.stats().scheduler


def test_texts_in_and_outputs_in_their_order(llm):
    prompts = ["The capital of France is", "the", "a longer prompt than the others"]
    outputs = llm.generate(prompts, SamplingParams(temperature=0.8, top_p=0.95))
    assert [output.prompt for output in outputs] == prompts
    assert all(output.finished and output.outputs[0].finished() for output in outputs)
    assert all(isinstance(output.outputs[0].text, str) for output in outputs)
    assert all(1 <= len(output.outputs[0].token_ids) <= 16 for output in outputs)


def test_all_forms_of_a_prompt_give_the_same(llm):
    ids = llm.get_tokenizer().encode("the same")
    many = ["the same", ids, {"prompt": "the same"}, {"prompt_token_ids": ids, "prompt": "shown"}]
    outputs = llm.generate(many, GREEDY, use_tqdm=False)
    assert len({tuple(token_ids) for token_ids in ids_of(outputs)}) == 1
    assert [output.prompt for output in outputs] == ["the same", None, "the same", "shown"]
    assert ids_of(llm.generate(ids, GREEDY, use_tqdm=False)) == ids_of(outputs[:1])
    assert llm.generate([], GREEDY) == []


def test_each_prompt_may_have_its_own_parameters(llm):
    params = [SamplingParams(temperature=0, max_tokens=n, ignore_eos=True) for n in (1, 5, 3)]
    outputs = llm.generate(["a", "b", "c"], params, use_tqdm=False)
    assert [len(token_ids) for token_ids in ids_of(outputs)] == [1, 5, 3]
    assert [output.outputs[0].finish_reason for output in outputs] == ["length"] * 3


def test_without_parameters_the_models_defaults_hold(folder):
    defaults = {"temperature": 0.0, "max_new_tokens": 3}
    with LLM(folder, override_generation_config=defaults, **SMALL) as llm:
        assert llm.get_default_sampling_params() == SamplingParams(temperature=0, max_tokens=3)
        assert len(llm.generate("a", use_tqdm=False)[0].outputs[0].token_ids) <= 3


def test_chat_takes_one_conversation_or_many(llm):
    (one,) = llm.chat(USER, GREEDY, use_tqdm=False)
    assert one.prompt == "<|im_start|>user\nhello<|im_end|>\n<|im_start|>assistant\n"
    assert one.prompt_token_ids.count(llm.get_tokenizer().bos_token_id) == 0
    two = llm.chat([USER, USER], GREEDY, use_tqdm=False)
    assert ids_of(two) == ids_of([one, one])


def test_chat_options_reach_the_template(llm):
    template = "{{ messages[0]['content'] }}{{ mood }}{{ tools[0]['name'] }}{{ add_generation_prompt }}"
    (output,) = llm.chat(
        USER,
        GREEDY,
        use_tqdm=False,
        chat_template=template,
        chat_template_kwargs={"mood": "!"},
        tools=[{"name": "search"}],
        add_generation_prompt=False,
    )
    assert output.prompt == "hello!searchFalse"


def test_the_final_message_can_be_continued(llm):
    messages = [*USER, {"role": "assistant", "content": "Hi th"}]
    options = {"continue_final_message": True, "add_generation_prompt": False}
    (output,) = llm.chat(messages, GREEDY, use_tqdm=False, **options)
    assert output.prompt.endswith("<|im_start|>assistant\nHi th")


def test_n_continuations_come_back_in_one_output(llm):
    params = SamplingParams(n=3, seed=1, temperature=1.0, max_tokens=8, ignore_eos=True)
    (output,) = llm.generate("several", params, use_tqdm=False)
    assert [completion.index for completion in output.outputs] == [0, 1, 2]
    assert len({tuple(completion.token_ids) for completion in output.outputs}) == 3
    (alone,) = llm.generate("several", SamplingParams(seed=1, max_tokens=8, ignore_eos=True), use_tqdm=False)
    assert alone.outputs[0].token_ids == output.outputs[0].token_ids


def test_a_stop_string_ends_the_text_and_frees_the_engine(llm):
    (whole,) = llm.generate("stop here", LONG, use_tqdm=False)
    text = whole.outputs[0].text
    stop = text[10:13]
    (output,) = llm.generate("stop here", LONG.clone(stop=stop), use_tqdm=False)
    completion = output.outputs[0]
    assert (completion.finish_reason, completion.stop_reason) == ("stop", stop)
    assert completion.text == text[: text.index(stop)]
    assert len(completion.token_ids) < 60
    assert (stats(llm).num_running, stats(llm).num_waiting) == (0, 0)


def test_logprobs_have_vllms_shape(llm):
    (output,) = llm.generate("logprobs", GREEDY.clone(logprobs=2, prompt_logprobs=1), use_tqdm=False)
    completion = output.outputs[0]
    assert len(completion.logprobs) == len(completion.token_ids)
    for token_id, entry in zip(completion.token_ids, completion.logprobs, strict=True):
        assert entry[token_id].rank == 1
        assert len(entry) == 2
    assert completion.cumulative_logprob == pytest.approx(
        sum(e[t].logprob for t, e in zip(completion.token_ids, completion.logprobs, strict=True))
    )
    assert output.prompt_logprobs[0] is None
    assert len(output.prompt_logprobs) == len(output.prompt_token_ids)
    assert all(t in e for t, e in zip(output.prompt_token_ids[1:], output.prompt_logprobs[1:], strict=True))


def test_times_are_in_order(llm):
    metrics = llm.generate("times", GREEDY, use_tqdm=False)[0].metrics
    times = [
        metrics.arrival_time,
        metrics.first_scheduled_time,
        metrics.first_token_time,
        metrics.last_token_time,
        metrics.finished_time,
    ]
    assert times == sorted(times)


# ---- what is refused, before anything runs -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prompts", "params", "words"),
    [
        (["fine", [999999]], GREEDY, r"prompts\[1\]: prompt_token_ids\[0\]=999999"),
        (["fine", [5] * 600], GREEDY, r"prompts\[1\]: This model's maximum context length is \d+ tokens"),
        (["fine", "fine"], [GREEDY], "1 entries for 2 prompts"),
        (["fine", "fine"], GREEDY.clone(logprobs=21), "logprobs=21"),
        (["fine", {"promt": "a"}], GREEDY, "unknown keys"),
        (["fine", ""], GREEDY.clone(stop_token_ids=[320]), "stop_token_ids"),
    ],
)
def test_one_bad_request_stops_the_call_before_anything_runs(llm, prompts, params, words):
    before = stats(llm).num_steps
    with pytest.raises(ValidationError, match=words):
        llm.generate(prompts, params, use_tqdm=False)
    assert stats(llm).num_steps == before
    assert not llm.engine.front_end.has_work


def test_priorities_must_match_the_prompts(llm):
    with pytest.raises(ValidationError, match="priority has 1 entries for 2 prompts: give one each"):
        llm.generate(["a", "b"], GREEDY, priority=[1], use_tqdm=False)


def test_unknown_options_are_refused_with_the_near_one(folder):
    with pytest.raises(ConfigError, match="max_num_seqs"):
        LLM(folder, max_num_seq=4)


def test_what_can_never_fit_is_refused_and_leaves_nothing_behind(folder):
    with LLM(folder, **SMALL | {"num_gpu_blocks_override": 3, "max_model_len": 32}) as llm:
        assert len(llm.generate([5] * 20, GREEDY, use_tqdm=False)[0].outputs[0].token_ids) == 6
        with pytest.raises((CapacityError, ValidationError)):
            llm.generate(["a", [5] * 40], GREEDY, use_tqdm=False)
        assert not llm.engine.front_end.has_work


# ---- what survives an error ----------------------------------------------------------------------------------------


class BreakingBar:
    """A progress bar that does something terrible when the first request finishes."""

    def __init__(self, action):
        self.action, self.is_closed = action, False

    def __call__(self, total, desc):
        return self

    def update(self, n=1):
        self.action()

    def set_postfix_str(self, s):
        pass

    def close(self):
        self.is_closed = True


def raise_error():
    raise RuntimeError("bar broke")


def press_ctrl_c():
    os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize(("action", "error"), [(raise_error, RuntimeError), (press_ctrl_c, KeyboardInterrupt)])
@pytest.mark.parametrize("depth", [1, 2])
def test_an_error_inside_generate_aborts_all_and_leaves_the_engine_usable(folder, action, error, depth):
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with LLM(folder, max_concurrent_steps=depth, **SMALL) as llm:
            expected = ids_of(llm.generate("afterwards", GREEDY, use_tqdm=False))
            bar = BreakingBar(action)
            with pytest.raises(error):
                llm.generate(["short", "long"], [GREEDY, LONG], use_tqdm=bar)
            assert bar.is_closed
            assert not llm.engine.front_end.has_work
            assert (stats(llm).num_running, stats(llm).num_waiting) == (0, 0)
            assert stats(llm).num_finished["abort"] == 1
            assert llm.reset_prefix_cache()
            assert ids_of(llm.generate("afterwards", GREEDY, use_tqdm=False)) == expected
    finally:
        signal.signal(signal.SIGINT, before)


# ---- the life of an LLM --------------------------------------------------------------------------------------------


def test_cached_prefixes_are_used_and_can_be_forgotten(llm):
    prompt = list(range(10, 60))
    assert llm.reset_prefix_cache()
    cached = []
    for is_reset in (False, False, True):
        if is_reset:
            assert llm.reset_prefix_cache()
        cached.append(llm.generate(prompt, GREEDY, use_tqdm=False)[0].num_cached_tokens)
    assert cached == [0, 32, 0]


def test_a_cache_salt_keeps_prefixes_apart(llm):
    llm.reset_prefix_cache()
    ids = list(range(60, 110))
    salts = [None, "tenant", "tenant"]
    prompts = [{"prompt_token_ids": ids} | ({"cache_salt": salt} if salt else {}) for salt in salts]
    assert [llm.generate(p, GREEDY, use_tqdm=False)[0].num_cached_tokens for p in prompts] == [0, 0, 32]


def test_the_startup_timeline_sums_to_the_time_it_took(folder):
    started_s = time.perf_counter()
    with LLM(folder, **SMALL) as llm:
        took_s = time.perf_counter() - started_s
        phases = llm.startup_timeline
    assert {"checkpoint", "tokenizer", "weights", "warm-up"} <= set(phases)
    assert 0 <= took_s - sum(phases.values()) < 0.05 + 0.1 * took_s


def test_a_closed_llm_says_so(folder):
    llm = LLM(folder, **SMALL)
    llm.close()
    llm.close()
    with pytest.raises(EngineDeadError, match="closed"):
        llm.generate("a", GREEDY)


def test_engine_args_are_checked_when_made_and_make_the_same_engine(folder):
    with pytest.raises(ConfigError, match="max_num_seqs"):
        EngineArgs(model=folder, max_num_seqs="many")
    with LLM.from_engine_args(EngineArgs(model=folder, **SMALL)) as llm:
        assert llm.config.scheduler.max_num_seqs == 8


def test_without_a_tokenizer_ids_go_in_and_out(folder):
    with LLM(folder, skip_tokenizer_init=True, **SMALL) as llm:
        (output,) = llm.generate([5, 6], GREEDY.clone(detokenize=False), use_tqdm=False)
        assert (len(output.outputs[0].token_ids), output.outputs[0].text) == (6, "")
        with pytest.raises(ValidationError, match="tokenizer"):
            llm.generate("text", GREEDY, use_tqdm=False)
        with pytest.raises(ValidationError, match="tokenizer"):
            llm.get_tokenizer()


def test_every_public_name_is_there():
    assert all(getattr(octavo, name) is not None for name in octavo.__all__)
    with pytest.raises(AttributeError):
        octavo.no_such_name  # noqa: B018


@pytest.mark.parametrize("params", [{"max_tokens": 4}, "x", 3, [None], ["x"], (p for p in [GREEDY])])
def test_parameters_of_another_type_are_refused(llm, params):
    with pytest.raises(ValidationError, match="sampling_params: must be"):
        llm.generate(["a"], params, use_tqdm=False)


@pytest.mark.parametrize("priority", [1, ["x"], [None], [1.5]])
def test_priorities_of_another_type_are_refused(llm, priority):
    with pytest.raises(ValidationError, match="priority: must be"):
        llm.generate(["a"], GREEDY, use_tqdm=False, priority=priority)


def test_a_call_inside_a_call_is_refused_and_the_engine_goes_on(llm):
    class Nesting:
        def __init__(self, **options):
            pass

        def update(self, n=1):
            llm.generate("inner", GREEDY, use_tqdm=False)

        def set_postfix_str(self, text):
            pass

        def close(self):
            pass

    expected = ids_of(llm.generate(["a", "b"], [GREEDY, LONG], use_tqdm=False))
    with pytest.raises(ValidationError, match="generating already"):
        llm.generate(["a", "b"], [GREEDY, LONG], use_tqdm=Nesting)
    assert ids_of(llm.generate(["a", "b"], [GREEDY, LONG], use_tqdm=False)) == expected


def test_threads_that_call_at_once_get_their_texts_or_are_refused(llm):
    expected = ids_of(llm.generate(["a", "b"], [GREEDY, LONG], use_tqdm=False))
    found = []

    def call():
        with contextlib.suppress(ValidationError):
            found.append(ids_of(llm.generate(["a", "b"], [GREEDY, LONG], use_tqdm=False)))

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found
    assert all(ids == expected for ids in found)


def test_a_token_the_tokenizer_fails_on_ends_its_request_and_no_other(folder, monkeypatch):
    bad_id, good_id = 40, 41
    with LLM(model=folder, **SMALL) as llm:
        tokenizer = llm.get_tokenizer()
        id_to_bytes = tokenizer.id_to_bytes

        def fail_for_one(token_id):
            if token_id == bad_id:
                raise RuntimeError("index out of bounds")
            return id_to_bytes(token_id)

        monkeypatch.setattr(tokenizer, "id_to_bytes", fail_for_one)
        params = [GREEDY.clone(logit_bias={forced: 100.0}) for forced in (good_id, bad_id, good_id)]
        outputs = llm.generate(["one", "two", "three"], params, use_tqdm=False)
        assert [output.outputs[0].finish_reason for output in outputs] == ["length", "error", "length"]
        assert ids_of(outputs) == [[good_id] * 6, [], [good_id] * 6]
        assert stats(llm).num_running == stats(llm).num_waiting == 0

"""AsyncLLM with its engine in a thread, and the ways a start can fail. Deaths of engines are in tests/fault."""

from __future__ import annotations

import asyncio
import json
import os

import pytest
from fakes.async_engine import SMALL, collect, small_engine, until
from fakes.hf_folder import write_hf_folder
from fakes.live_server import descendants

from octavo import LLM
from octavo.base.errors import CapacityError, ConfigError, EngineDeadError, LoadError, ValidationError
from octavo.config.load import load_config
from octavo.engine.args import EngineArgs
from octavo.engine.front.async_llm import AsyncLLM
from octavo.engine.front.async_options import AsyncOptions
from octavo.engine.input.preparation import RequestTerms
from octavo.engine.input.prompts import ChatOptions
from octavo.engine.output.processor import OUTPUT_FAULT
from octavo.fault.state import EngineState
from octavo.proto.sampling import RequestOutputKind, SamplingParams

THREAD = {"in_process": True}
MESSAGES = [{"role": "user", "content": "hello"}]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_hf_folder(tmp_path_factory.mktemp("model") / "tiny")


def greedy(num_tokens=12, **fields):
    given = {"max_tokens": num_tokens, "ignore_eos": True, "temperature": 0.0}
    return SamplingParams(**(given | {"output_kind": RequestOutputKind.DELTA} | fields))


def with_engine(folder, body, **options):
    async def main():
        async with small_engine(folder, **(THREAD | options)) as llm:
            await asyncio.wait_for(body(llm), 30)

    asyncio.run(main())


def test_its_outputs_are_those_of_the_offline_api(folder):
    prompts = ["one", "another prompt", {"prompt_token_ids": [5, 6, 7]}]
    params = greedy(30, logprobs=2).clone(output_kind=RequestOutputKind.FINAL_ONLY)
    with LLM(str(folder), **SMALL) as llm:
        offline = llm.generate(prompts, params, use_tqdm=False)

    async def body(llm):
        async def last(prompt):
            return [output async for output in llm.generate(prompt, params)]

        for (output,), expected in zip(await asyncio.gather(*map(last, prompts)), offline, strict=True):
            assert output.outputs == expected.outputs
            assert output.prompt_token_ids == expected.prompt_token_ids

    with_engine(folder, body)


def test_an_engine_from_arguments_starts_with_the_first_request(folder):
    async def main():
        args = EngineArgs(model=str(folder), **SMALL)
        async with AsyncLLM.from_engine_args(args, AsyncOptions(**THREAD)) as llm:
            assert len((await collect(llm.generate("a", greedy(5))))["outputs"][0]["ids"]) == 5

        lazy = AsyncLLM.from_engine_args(args, AsyncOptions(**THREAD))
        assert lazy.state is EngineState.STARTING
        with pytest.raises(EngineDeadError, match="not started"):
            _ = lazy.config
        first, second = await asyncio.gather(*(collect(lazy.generate("a", greedy(5))) for _ in range(2)))
        assert first == second
        await lazy.shutdown()

    asyncio.run(main())


def test_the_same_request_id_may_be_used_twice_at_once(folder):
    async def body(llm):
        results = await asyncio.gather(*(collect(llm.generate(text, greedy(), "same")) for text in ("a", "b")))
        assert all(len(result["outputs"][0]["ids"]) == 12 for result in results)

    with_engine(folder, body)


def test_a_token_the_tokenizer_fails_on_ends_its_request_and_no_other(folder, monkeypatch):
    bad_id, good_id = 40, 41

    async def body(llm):
        tokenizer = llm.get_tokenizer()
        id_to_bytes = tokenizer.id_to_bytes

        def fail_for_one(token_id):
            if token_id == bad_id:
                raise RuntimeError("index out of bounds")
            return id_to_bytes(token_id)

        monkeypatch.setattr(tokenizer, "id_to_bytes", fail_for_one)
        params = [greedy(logit_bias={forced: 100.0}) for forced in (good_id, bad_id, good_id)]
        results = await asyncio.gather(*(collect(llm.generate("a", one)) for one in params))
        whole, failed, other = [result["outputs"][0] for result in results]
        assert (failed["ids"], failed["end"]) == ([], ("error", None, OUTPUT_FAULT.text))
        assert whole["ids"] == other["ids"] == [good_id] * 12
        assert llm.state is EngineState.HEALTHY
        assert (await llm.stats()).scheduler.num_running == 0

    with_engine(folder, body)


def test_a_conversation_is_prepared_by_the_models_template(folder):
    async def body(llm):
        preparation = await llm.preparation()
        terms = RequestTerms(request_id="chat")
        prepared = await preparation.prepare_chat(MESSAGES, greedy(), terms, cache_salt="mine")
        assert prepared.prompt.text == "<|im_start|>user\nhello<|im_end|>\n<|im_start|>assistant\n"
        assert (prepared.request_id, prepared.sequences[0].cache_salt) == ("chat", "mine")
        assert prepared.prompt.token_ids == await preparation.tokenize_chat(MESSAGES)
        assert await preparation.detokenize(prepared.prompt.token_ids) == prepared.prompt.text
        assert len((await collect(llm.generate(prepared)))["outputs"][0]["ids"]) == 12

    with_engine(folder, body)


def test_special_tokens_are_added_as_asked(folder):
    async def body(llm):
        preparation = await llm.preparation()
        plain = await preparation.tokenize("a", add_special_tokens=False)
        assert await preparation.tokenize("a") == [llm.get_tokenizer().bos_token_id, *plain]

    with_engine(folder, body)


def test_a_template_of_the_request_is_refused_unless_trusted(folder):
    chat = ChatOptions(chat_template="{{ messages[0]['content'] }}!")

    async def refused(llm):
        preparation = await llm.preparation()
        for attempt in (
            preparation.prepare_chat(MESSAGES, None, RequestTerms(request_id="a"), chat=chat),
            preparation.tokenize_chat(MESSAGES, chat),
        ):
            with pytest.raises(ValidationError, match="--trust-request-chat-template") as caught:
                await attempt
            assert caught.value.parameter == "chat_template"

    async def trusted(llm):
        preparation = await llm.preparation()
        prepared = await preparation.prepare_chat(MESSAGES, None, RequestTerms(request_id="a"), chat=chat)
        assert prepared.prompt.text == "hello!"

    with_engine(folder, refused)
    with_engine(folder, trusted, trust_request_chat_template=True)


@pytest.mark.parametrize(
    ("prompt", "params", "message"),
    [
        ([], None, "no tokens"),
        ("x" * 2_000_000, None, r"maximum context length is 512 tokens.*2000000 bytes"),
        ([1] * 600, None, "maximum context length is 512 tokens"),
        ([99999], None, "token ids are whole numbers"),
        ("a", SamplingParams(stop_token_ids=[99999]), "stop_token_ids"),
    ],
)
def test_a_request_that_cannot_run_is_refused_before_the_engine_sees_it(folder, prompt, params, message):
    async def body(llm):
        with pytest.raises(ValidationError, match=message):
            await (await llm.preparation()).prepare(prompt, params, RequestTerms(request_id="bad"))
        assert (llm.num_live_requests, llm.num_queued_requests, llm.num_queued_tokens) == (0, 0, 0)

    with_engine(folder, body)


def test_an_aborted_request_ends_with_what_it_has(folder):
    async def body(llm):
        task = asyncio.create_task(collect(llm.generate("a", greedy(400), "mine")))
        await until(lambda: llm.num_live_requests == 1 and llm.num_queued_requests == 0)
        await llm.abort("mine")
        end = (await task)["outputs"][0]["end"]
        assert end[0] == "abort"
        await until_idle(llm)

    with_engine(folder, body)


async def until_idle(llm):
    for _ in range(1000):
        stats = (await llm.stats()).scheduler
        if (stats.num_running, stats.num_waiting, stats.kv_usage) == (0, 0, 0.0):
            return
        await asyncio.sleep(0.002)
    raise TimeoutError("the engine still has work")


def test_a_cancelled_consumer_frees_what_the_engine_held(folder):
    async def body(llm):
        tasks = [
            asyncio.create_task(collect(llm.generate(f"{i}", greedy(400, n=2, temperature=1.0)))) for i in range(4)
        ]
        await until(lambda: llm.num_live_requests == 4 and llm.num_queued_requests == 0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert llm.num_live_requests == 0
        await until_idle(llm)

    with_engine(folder, body)


def test_a_deadline_ends_a_request_in_time(folder):
    async def body(llm):
        result = await collect(llm.generate("a", greedy(500), deadline_s=0.05))
        reason, _, error = result["outputs"][0]["end"]
        assert (reason, "deadline" in error) == ("error", True)
        await until_idle(llm)

    with_engine(folder, body)


def test_requests_without_a_seed_differ(folder):
    async def body(llm):
        params = greedy(20, temperature=1.0)
        first, second = [await collect(llm.generate("a", params)) for _ in range(2)]
        assert first["outputs"][0]["ids"] != second["outputs"][0]["ids"]

    with_engine(folder, body)


def test_health_stats_and_the_prefix_cache_are_a_round_trip_away(folder):
    async def body(llm):
        await llm.check_health()
        await collect(llm.generate(list(range(5, 105)), greedy(3)))
        assert (await llm.stats()).scheduler.num_finished == {"length": 1}
        assert await llm.reset_prefix_cache()

    with_engine(folder, body)


def test_draining_lets_requests_finish_and_takes_no_more(folder):
    async def body(llm):
        task = asyncio.create_task(collect(llm.generate("a", greedy(100))))
        await until(lambda: llm.num_live_requests == 1 and llm.num_queued_requests == 0)
        assert await llm.drain(20.0)
        assert (await task)["outputs"][0]["end"][0] == "length"
        with pytest.raises(EngineDeadError, match="draining"):
            await llm.preparation()

    with_engine(folder, body)


def test_what_has_not_finished_when_draining_is_over_ends_with_an_error(folder):
    async def body(llm):
        task = asyncio.create_task(collect(llm.generate("a", greedy(500))))
        await until(lambda: llm.num_live_requests == 1 and llm.num_queued_requests == 0)
        assert not await llm.drain(0.01)
        assert (await task)["outputs"][0]["end"][0] == "error"

    with_engine(folder, body)


def test_shutting_down_ends_open_streams(folder):
    async def body(llm):
        task = asyncio.create_task(collect(llm.generate("a", greedy(500))))
        await until(lambda: llm.num_live_requests == 1 and llm.num_queued_requests == 0)
        await llm.shutdown()
        assert (await task)["outputs"][0]["end"][0] == "error"
        assert llm.errored
        with pytest.raises(EngineDeadError):
            await llm.check_health()

    with_engine(folder, body)


@pytest.fixture
def broken_folder(tmp_path):
    """Looks like a model to the front end; its weights are not there."""
    folder = write_hf_folder(tmp_path / "broken")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 3}))
    return folder


@pytest.mark.parametrize("in_process", [True, False], ids=["thread", "process"])
@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"model": "/nonexistent/model"}, LoadError, "nonexistent"),
        ({"max_model_len": 100_000}, ConfigError, "max_model_len"),
        ({"model": "broken"}, LoadError, "layers.2"),
        ({"num_gpu_blocks_override": 2, "max_model_len": 500}, (ConfigError, CapacityError), "."),
    ],
)
def test_a_start_that_fails_raises_the_engines_own_error_and_leaves_nothing(
    folder, broken_folder, options, error, message, in_process
):
    given = {"model": str(folder), **SMALL, **options}
    if given["model"] == "broken":
        given["model"] = str(broken_folder)

    async def main():
        with pytest.raises(error, match=message):
            await AsyncLLM.start(load_config(given, usage="server"), AsyncOptions(in_process=in_process))

    before = set(descendants(os.getpid()))
    asyncio.run(main())
    assert set(descendants(os.getpid())) <= before


def test_a_start_that_is_given_up_leaves_no_process(folder):
    async def main():
        config = load_config({"model": str(folder), **SMALL}, usage="server")
        llm = AsyncLLM(config)
        task = asyncio.create_task(llm.ready())
        await until(lambda: llm.engine_pid is not None)
        await llm.shutdown()
        assert (await asyncio.gather(task, return_exceptions=True))[0] is not None

    before = set(descendants(os.getpid()))
    asyncio.run(main())
    assert set(descendants(os.getpid())) <= before

import dataclasses

import pytest
from fakes.model_facts import GIB, llama_facts, machine_facts

from octavo.base.errors import ConfigError
from octavo.config.load import load_config
from octavo.config.resolve import resolve


def resolved(given=None, *, usage="offline", model=None, machine=None):
    config = load_config(given or {}, usage=usage, env={})
    return resolve(config, model or llama_facts(), machine or machine_facts())


def refusals(given=None, **facts):
    with pytest.raises(ConfigError) as caught:
        resolved(given, **facts)
    return {problem.option: problem.remedy for problem in caught.value.problems}


def autos_in(value):
    if dataclasses.is_dataclass(value):
        return [name for item in dataclasses.fields(value) for name in autos_in_field(value, item.name)]
    return []


def autos_in_field(value, name):
    inner = getattr(value, name)
    return [name] if isinstance(inner, str) and inner == "auto" else autos_in(inner)


@pytest.mark.parametrize("usage", ["offline", "server"])
def test_nothing_is_auto_afterwards(usage):
    # These name a behaviour of their own: by what the files hold, by what the model says, by what its template says.
    named = ["load_format", "generation_config", "tool_call_parser", "tool_strict_level", "reasoning_parser"]
    assert autos_in(resolved(usage=usage)) == named


@pytest.mark.parametrize(
    ("usage", "num_seqs", "num_tokens", "quiet"), [("offline", 256, 4096, True), ("server", 128, 2048, False)]
)
def test_defaults_follow_the_usage(usage, num_seqs, num_tokens, quiet):
    config = resolved(usage=usage)
    assert config.scheduler.max_num_seqs == num_seqs
    assert config.scheduler.max_num_batched_tokens == num_tokens
    assert config.disable_log_stats is quiet


@pytest.mark.parametrize(
    ("given", "checkpoint_dtype", "backends", "expected"),
    [
        ({}, "bfloat16", ("reference", "cpu"), "bfloat16"),
        ({}, "float16", ("reference", "cpu"), "bfloat16"),
        ({}, "quantized", ("reference", "cpu"), "bfloat16"),
        ({}, "float32", ("reference", "cpu"), "float32"),
        ({}, "bfloat16", ("reference",), "float32"),
        ({"kernel_backend": "reference"}, "bfloat16", ("reference", "cpu"), "float32"),
        ({"dtype": "bfloat16"}, "float32", ("reference",), "bfloat16"),
    ],
)
def test_dtype(given, checkpoint_dtype, backends, expected):
    config = resolved(
        given,
        model=llama_facts(checkpoint_dtype=checkpoint_dtype),
        machine=machine_facts(kernel_backends=backends),
    )
    assert config.model.dtype == config.cache.spec.dtype == config.options.model.dtype == expected


def test_the_reference_back_end_holds_bfloat16_in_twice_the_memory():
    given = {"dtype": "bfloat16", "num_gpu_blocks_override": 10}
    native = resolved(given)
    reference = resolved({**given, "kernel_backend": "reference"})
    assert reference.cache.spec == native.cache.spec
    assert reference.budget.kv_bytes == 2 * native.budget.kv_bytes
    assert reference.budget.weights_bytes == 2 * native.budget.weights_bytes


@pytest.mark.parametrize(
    ("given", "is_async", "steps"),
    [
        ({}, False, 1),
        ({"async_scheduling": True}, True, 2),
        ({"async_scheduling": False}, False, 1),
        ({"max_concurrent_steps": 3}, True, 3),
        ({"max_concurrent_steps": 1}, False, 1),
        ({"max_concurrent_steps": 3, "async_scheduling": True}, True, 3),
    ],
)
def test_depth(given, is_async, steps):
    scheduler = resolved(given).scheduler
    assert (scheduler.async_scheduling, scheduler.max_concurrent_steps) == (is_async, steps)


def test_the_best_kernels_of_the_machine_are_taken():
    kernels = resolved(machine=machine_facts(isa_levels=("scalar", "avx2"), num_cores=3)).kernels
    assert (kernels.kernel_backend, kernels.cpu_isa, kernels.num_threads) == ("cpu", "avx2", 3)


def test_kernels_that_are_not_there_are_refused_together():
    machine = machine_facts(isa_levels=("scalar", "avx2"), kernel_backends=("reference",))
    problems = refusals({"kernel_backend": "cpu", "cpu_isa": "amx"}, machine=machine)
    assert set(problems) == {"kernel_backend", "cpu_isa"}
    assert "reference" in problems["kernel_backend"]
    assert "scalar or avx2" in problems["cpu_isa"]


def test_whole_prompts_raise_the_step_budget_to_the_length():
    config = resolved({"enable_chunked_prefill": False})
    assert config.scheduler.max_num_batched_tokens == config.model.max_model_len == 8192


def test_whole_prompts_do_not_lower_the_step_budget():
    assert resolved({"enable_chunked_prefill": False, "max_model_len": 64}).scheduler.max_num_batched_tokens == 4096


def test_a_step_budget_below_the_length_is_refused_without_chunks():
    problems = refusals({"enable_chunked_prefill": False, "max_num_batched_tokens": 512, "max_model_len": 1024})
    assert "--max-num-batched-tokens 1024" in problems["max_num_batched_tokens"]
    assert "--max-model-len 512" in problems["max_num_batched_tokens"]


def test_a_length_that_does_not_fit_names_the_one_that_does():
    problems = refusals({"max_model_len": 8192, "kv_cache_memory_bytes": "100M"})
    assert "fits: 4512" in problems["max_model_len"]
    assert resolved({"max_model_len": 4512, "kv_cache_memory_bytes": "100M"}).model.max_model_len == 4512


@pytest.mark.parametrize("available_mib", [700, 1024, 2048, 8192, 65536])
@pytest.mark.parametrize("usage", ["offline", "server"])
def test_the_defaults_start_wherever_the_weights_fit(usage, available_mib):
    config = resolved(usage=usage, machine=machine_facts(available_bytes=available_mib * 2**20))
    budget = config.budget
    assert budget.weights_bytes + budget.kv_bytes + budget.work_bytes <= available_mib * 2**20
    assert config.model.max_model_len >= 32


def test_the_budget_is_one_line_that_adds_up():
    budget = resolved({"kv_cache_memory_bytes": "1500M"}).budget
    assert str(budget) == (
        "weights 257.49 MiB | KV 1.46 GiB = 2,133 blocks of 32 = 68,224 tokens"
        f" | work {budget.work_bytes / 2**20:.2f} MiB"
        f" | total {(budget.weights_bytes + budget.kv_bytes + budget.work_bytes) / GIB:.2f} GiB of 8.00 GiB available"
    )


def test_the_model_is_served_under_its_own_name_unless_told_otherwise():
    assert resolved({"model": "some/where"}).model.served_model_names == ("some/where",)
    assert resolved({"served_model_name": "a b"}).model.served_model_names == ("a", "b")


def test_weights_in_another_format_than_asked_are_refused():
    assert "are in gguf" in refusals({"load_format": "safetensors"})["load_format"]
    assert resolved({"load_format": "gguf"}).options.model.load_format == "gguf"


def test_the_hash_key_is_bytes():
    assert resolved({"prefix_hash_key": "clé"}).cache.prefix_hash_key == "clé".encode()


def test_a_small_step_limits_the_sequences_that_were_not_given_and_many_sequences_widen_it():
    small = resolved({"max_num_batched_tokens": 64}).scheduler
    assert (small.max_num_seqs, small.max_num_batched_tokens) == (64, 64)
    many = resolved({"max_num_seqs": 5000, "max_model_len": 64}).scheduler
    assert (many.max_num_seqs, many.max_num_batched_tokens) == (5000, 5000)


def test_a_block_size_that_the_back_end_cannot_read_is_refused_before_anything_is_loaded():
    assert "--block-size 64" in refusals({"block_size": 48})["block_size"]
    assert resolved({"block_size": 48, "kernel_backend": "reference"}).cache.spec.block_size == 48

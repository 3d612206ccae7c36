import pytest

from octavo.config.answer_options import AnswerConfig
from octavo.config.load import load_config
from octavo.config.schema import CacheConfig, EngineConfig, ParallelConfig, SchedulerConfig
from octavo.config.server_options import ServerConfig
from octavo.config.validate import RULES, find_problems

BAD = [
    (EngineConfig(parallel=ParallelConfig(tensor_parallel_size=2, data_parallel_size=4)),
     ["tensor_parallel_size", "data_parallel_size"]),
    (EngineConfig(cache=CacheConfig(gpu_memory_utilization=0.9)), ["gpu_memory_utilization"]),
    (EngineConfig(scheduler=SchedulerConfig(max_concurrent_steps=1, async_scheduling=True)), ["max_concurrent_steps"]),
    (EngineConfig(scheduler=SchedulerConfig(max_concurrent_steps=2, async_scheduling=False)), ["max_concurrent_steps"]),
    (EngineConfig(scheduler=SchedulerConfig(enable_chunked_prefill=False, long_prefill_token_threshold=64)),
     ["long_prefill_token_threshold"]),
    (EngineConfig(scheduler=SchedulerConfig(max_num_seqs=9, max_num_batched_tokens=8)), ["max_num_batched_tokens"]),
    (EngineConfig(cache=CacheConfig(num_gpu_blocks_override=8, kv_cache_memory_bytes=2**30)),
     ["num_gpu_blocks_override"]),
    (EngineConfig(server=ServerConfig(ssl_keyfile="key.pem")), ["ssl_keyfile"]),
    (EngineConfig(server=ServerConfig(ssl_certfile="cert.pem")), ["ssl_certfile"]),
    (EngineConfig(server=ServerConfig(admin_port=9)), ["admin_port"]),
    (EngineConfig(server=ServerConfig(uds="s", ssl_certfile="c", ssl_keyfile="k")), ["uds"]),
    (EngineConfig(server=ServerConfig(in_process=True, api_server_count=2)), ["api_server_count"]),
    (EngineConfig(answers=AnswerConfig(structured_outputs_config={
        "backend": "xgrammar", "disable_any_whitespace": "yes", "disable_any": True, "enable_in_reasoning": False})),
     ["structured_outputs_config.disable_any_whitespace", "structured_outputs_config.disable_any"]),
    (EngineConfig(answers=AnswerConfig(structured_outputs_config={"backend": "none/such"})),
     ["structured_outputs_config.backend"]),
]  # fmt: skip


@pytest.mark.parametrize(("config", "options"), BAD)
def test_what_does_not_go_together_is_named(config, options):
    assert [problem.option for problem in find_problems(config)] == options


def test_an_unknown_back_end_of_constraints_is_told_which_there_are():
    (problem,) = find_problems(EngineConfig(answers=AnswerConfig(structured_outputs_config={"backend": ["x"]})))
    assert str(problem).startswith("structured_outputs_config.backend=['x']: is not known; use auto or guidance")


def test_every_rule_is_broken_by_some_case_above():
    broken = {rule for rule in RULES for config, _ in BAD if list(rule(config))}
    assert broken == set(RULES)


def test_the_default_configuration_breaks_no_rule():
    assert find_problems(EngineConfig()) == []


def test_gpu_memory_utilization_is_answered_with_the_flag_for_cpu():
    (problem,) = find_problems(EngineConfig(cache=CacheConfig(gpu_memory_utilization=0.9)))
    assert "--kv-cache-memory-bytes" in problem.remedy


@pytest.mark.parametrize(
    "given",
    [
        {"max_concurrent_steps": 2, "async_scheduling": True},
        {"max_concurrent_steps": 3},
        {"async_scheduling": True},
        {"num_gpu_blocks_override": 8},
    ],
)
def test_what_goes_together_is_accepted(given):
    load_config(given, env={})

from pathlib import Path

import pytest

from octavo.config.schema import all_options
from octavo.config.values import read_value


def read(name, raw):
    return read_value(all_options()[name], raw)


@pytest.mark.parametrize(
    ("name", "raw", "expected"),
    [
        ("max_model_len", "8k", 8000),
        ("max_model_len", "8K", 8192),
        ("max_model_len", 8192, 8192),
        ("max_model_len", 8192.0, 8192),
        ("max_model_len", "auto", "auto"),
        ("max_model_len", "AUTO", "auto"),
        ("max_model_len", -1, "auto"),
        ("max_model_len", "-1", "auto"),
        ("max_logprobs", "-1", -1),
        ("kv_cache_memory_bytes", "4G", 4 * 2**30),
        ("kv_cache_memory_bytes", "512MiB", 512 * 2**20),
        ("gpu_memory_utilization", "0.9", 0.9),
        ("dtype", "half ", None),
        ("dtype", "bf16", "bfloat16"),
        ("dtype", "float", "float32"),
        ("enable_prefix_caching", "off", False),
        ("enable_prefix_caching", "Yes", True),
        ("async_scheduling", "auto", "auto"),
        ("async_scheduling", True, True),
        ("served_model_name", "a b", ("a", "b")),
        ("served_model_name", ["a", "b"], ("a", "b")),
        ("override_generation_config", '{"temperature": 0.5}', {"temperature": 0.5}),
        ("override_generation_config", {"top_p": 1}, {"top_p": 1}),
        ("model", Path("some/folder"), "some/folder"),
        ("load_format", "auto", "auto"),
    ],
)
def test_values_are_read_as_people_write_them(name, raw, expected):
    if expected is None:
        with pytest.raises(ValueError, match="float16"):
            read(name, raw)
    else:
        assert read(name, raw) == expected
        assert type(read(name, raw)) is type(expected)


@pytest.mark.parametrize(
    ("name", "raw", "remedy"),
    [
        ("max_model_len", 1, ">= 2"),
        ("max_model_len", "8x", "not a count"),
        ("max_model_len", True, "integer"),
        ("max_model_len", 1.5, "integer"),
        ("max_model_len", [8], "integer"),
        ("max_model_len", float("nan"), "must be an integer"),
        ("max_model_len", float("inf"), "must be an integer"),
        ("block_size", 24, "multiple of 16"),
        ("block_size", 8, "16 .. 1,024"),
        ("block_size", 2048, "16 .. 1,024"),
        ("max_concurrent_steps", 4, "1 .. 3"),
        ("seed", -1, ">= 0|0 .."),
        ("seed", 2**63, "0 .."),
        ("gpu_memory_utilization", 1.5, "0.01 .. 1.0"),
        ("gpu_memory_utilization", "nan", "0.01 .. 1.0"),
        ("gpu_memory_utilization", "lots", "number"),
        ("gpu_memory_utilization", True, "number"),
        ("kv_cache_memory_bytes", "4X", "not a size"),
        ("scheduling_policy", "lifo", "fcfs or priority"),
        ("scheduling_policy", ["fcfs"], "fcfs or priority"),
        ("scheduling_policy", "auto", "fcfs or priority"),
        ("enable_prefix_caching", "maybe", "true or false"),
        ("enable_prefix_caching", "auto", "true or false"),
        ("model", "", "not empty"),
        ("model", 3, "not empty"),
        ("served_model_name", [1], "names"),
        ("override_generation_config", "{", "JSON"),
        ("override_generation_config", "[1]", "JSON object"),
        ("load_format", "pt", "safetensors"),
        ("distributed_executor_backend", "ray", "uni"),
    ],
)
def test_what_cannot_be_used_is_refused_with_a_remedy(name, raw, remedy):
    with pytest.raises(ValueError, match=remedy):
        read(name, raw)

"""vLLM's side of a comparison: the workloads of `octavo bench workloads`, as JSON that `octavo bench compare` reads.

    VLLM_CPU_OMP_THREADS_BIND=0-1 python vllm_workloads.py MODEL_FOLDER --output-json vllm.json

Runs where vLLM is installed; needs nothing of Octavo. Prompts are those of `octavo bench workloads` with the same seed:
workload by workload in every round, all new, greedy, to their full length.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from pathlib import Path

import numpy as np

WORKLOADS = (
    ("single_128_128", 1, 128, 128),
    ("single_1024_64", 1, 1024, 64),
    ("batch_64x256_128", 64, 256, 128),
    ("prefill_16x1024", 16, 1024, 1),
)
"""Name, requests, input tokens, output tokens."""
MAX_RANDOM_ID = 10_000


def draw_prompts(num_prompts: int, input_len: int, vocab_size: int, seed: int) -> list[list[int]]:
    """The same ids as octavo.bench.samples.draw_random, which draws each length, too."""
    generator = np.random.default_rng(seed)
    highest = min(vocab_size, MAX_RANDOM_ID)
    generator.integers(0, highest, 0)
    prompts = []
    for _ in range(num_prompts):
        generator.integers(input_len, input_len + 1)
        prompts.append(generator.integers(0, highest, input_len).tolist())
        generator.integers(1, 2)
    return prompts


def main() -> None:
    """Load, run all rounds, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--num-rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", default=[name for name, *_ in WORKLOADS])
    parser.add_argument("--max-model-len", type=int, default=4096)
    parser.add_argument("--enforce-eager", action="store_true", help="do not compile")
    parser.add_argument("--output-json", required=True)
    args = parser.parse_args()
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "4")
    os.environ.setdefault("HF_HUB_OFFLINE", "1")

    import vllm

    started_s = time.perf_counter()
    llm = vllm.LLM(
        model=args.model,
        dtype=args.dtype,
        max_model_len=args.max_model_len,
        enforce_eager=args.enforce_eager,
        max_num_seqs=128,
        max_num_batched_tokens=2048,
    )
    start_s = time.perf_counter() - started_s
    vocab_size = llm.model_config.get_vocab_size() if hasattr(llm, "model_config") else MAX_RANDOM_ID

    def run(prompts: list[list[int]], output_len: int) -> float:
        params = vllm.SamplingParams(temperature=0.0, ignore_eos=True, max_tokens=output_len)
        begin_s = time.perf_counter()
        llm.generate([{"prompt_token_ids": prompt} for prompt in prompts], params, use_tqdm=False)
        return time.perf_counter() - begin_s

    run([[1] * 32], 8)
    chosen = [workload for workload in WORKLOADS if workload[0] in args.only]
    seconds: dict[str, list[float]] = {name: [] for name, *_ in chosen}
    for round_idx in range(args.num_rounds):
        for place, (name, num_requests, input_len, output_len) in enumerate(chosen):
            prompts = draw_prompts(num_requests, input_len, vocab_size, args.seed + round_idx * len(chosen) + place)
            seconds[name].append(run(prompts, output_len))
            print(f"{name:<20}{seconds[name][-1]:>10.3f} s", flush=True)
    result = {
        "engine": f"vLLM {vllm.__version__}",
        "start_s": start_s,
        "workloads": [
            {
                "name": name,
                "num_requests": num_requests,
                "input_len": input_len,
                "output_len": output_len,
                "seconds": seconds[name],
                "median_s": (median_s := statistics.median(seconds[name])),
                "input_tokens_per_second": num_requests * input_len / median_s,
                "output_tokens_per_second": num_requests * output_len / median_s,
            }
            for name, num_requests, input_len, output_len in chosen
        ],
    }
    Path(args.output_json).write_text(json.dumps(result, indent=4) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

"""The flags of `octavo bench serve`: names and defaults of `vllm bench serve`, and some of our own.

Owns: which flags there are.   Does not own: what their values mean (cli/bench_serve.py).
"""

from __future__ import annotations

import argparse
import math
from typing import Any

BACKENDS = ("openai", "openai-chat", "vllm", "octavo")
DATASETS = ("random", "sharegpt", "custom", "prefix_repetition", "mooncake", "azure")
TRACES = ("mooncake", "azure")
SAMPLING = {
    "temperature": float,
    "top_p": float,
    "top_k": int,
    "min_p": float,
    "frequency_penalty": float,
    "presence_penalty": float,
    "repetition_penalty": float,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    _add_target_flags(parser.add_argument_group("server"))
    _add_dataset_flags(parser.add_argument_group("prompts"))
    _add_load_flags(parser.add_argument_group("load"))
    _add_request_flags(parser.add_argument_group("requests"))
    _add_report_flags(parser.add_argument_group("report"))


def _add_target_flags(group: Any) -> None:
    group.add_argument("--backend", choices=BACKENDS, default="openai", help="kind of endpoint (default: openai)")
    group.add_argument("--base-url", metavar="URL", help="server, in place of --host and --port; http or https")
    group.add_argument("--host", default="127.0.0.1", help="default: 127.0.0.1")
    group.add_argument("--port", type=int, default=8000, metavar="N", help="default: 8000")
    group.add_argument("--endpoint", metavar="PATH", help="default: the backend's, such as /v1/completions")
    group.add_argument("--model", help="default: the first of the server's /v1/models")
    group.add_argument("--served-model-name", metavar="NAME", help="name for requests, if it is not --model")
    group.add_argument("--tokenizer", metavar="NAME", help="alias, path or hub id (default: the model's)")
    group.add_argument("--skip-tokenizer-init", action="store_true", help="no tokenizer: send random token ids")
    group.add_argument("--header", nargs="*", default=[], metavar="K=V", help="headers of each request")
    group.add_argument("--insecure", action="store_true", help="accept any certificate")
    group.add_argument(
        "--ready-check-timeout-sec", type=float, default=0.0, metavar="S", help="wait for the server (default: 0)"
    )


def _add_dataset_flags(group: Any) -> None:
    group.add_argument("--dataset-name", choices=DATASETS, default="random", help="default: random")
    group.add_argument("--dataset-path", metavar="FILE", help="file of sharegpt, custom, mooncake and azure")
    group.add_argument("--num-prompts", type=int, default=1000, metavar="N", help="requests (default: 1000)")
    group.add_argument("--seed", type=int, default=0, metavar="N", help="of prompts and arrivals (default: 0)")
    group.add_argument("--no-oversample", action="store_true", help="do not repeat requests of a small dataset")
    group.add_argument(
        "--skip-chat-template",
        "--custom-skip-chat-template",
        action="store_true",
        help="custom: send prompts as they are",
    )
    for flags, default, text in (
        (("--random-input-len", "--input-len"), 1024, "random: tokens per prompt"),
        (("--random-prefix-len",), 0, "random: tokens shared by all prompts, beside the others"),
        (("--prefix-repetition-prefix-len",), 256, "prefix_repetition: tokens per prefix"),
        (("--prefix-repetition-suffix-len",), 256, "prefix_repetition: tokens per suffix"),
        (("--prefix-repetition-num-prefixes",), 10, "prefix_repetition: different prefixes"),
        (("--trace-block-tokens", "--timed-trace-chunk-hash-size"), 512, "mooncake: tokens per hash id"),
    ):
        group.add_argument(*flags, type=int, default=default, metavar="N", help=f"{text} (default: {default})")
    group.add_argument(
        "--random-output-len",
        "--output-len",
        "--sharegpt-output-len",
        "--custom-output-len",
        "--prefix-repetition-output-len",
        dest="output_len",
        type=int,
        metavar="N",
        help="tokens per answer (default: random, prefix_repetition 128; custom 256; sharegpt as its own)",
    )
    group.add_argument(
        "--random-range-ratio", type=float, default=0.0, metavar="X", help="random: lengths vary by this share"
    )
    group.add_argument("--trace-max-input-len", type=int, metavar="N", help="traces: longer prompts are cut")
    group.add_argument("--trace-max-output-len", type=int, metavar="N", help="traces: longer answers are cut")


def _add_load_flags(group: Any) -> None:
    group.add_argument(
        "--request-rate", type=float, default=math.inf, metavar="X", help="requests/s; inf: all at once (default: inf)"
    )
    group.add_argument(
        "--burstiness", type=float, default=1.0, metavar="X", help="1: Poisson, below: bursts, inf: even (default: 1)"
    )
    group.add_argument("--max-concurrency", type=int, metavar="N", help="most requests open at once")
    group.add_argument("--ramp-up-strategy", choices=("linear", "exponential"), help="how the rate grows over the run")
    group.add_argument("--ramp-up-start-rps", type=float, metavar="X", help="rate at the first request")
    group.add_argument("--ramp-up-end-rps", type=float, metavar="X", help="rate at the last request")
    group.add_argument(
        "--self-timed",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="traces: send at the trace's own times (default: unless a rate is given)",
    )
    group.add_argument(
        "--time-scale",
        type=float,
        default=1.0,
        metavar="X",
        help="traces: times x X; 0.5 is twice as fast (default: 1)",
    )
    group.add_argument("--num-warmups", type=int, default=0, metavar="N", help="requests before the run (default: 0)")


def _add_request_flags(group: Any) -> None:
    group.add_argument("--ignore-eos", action="store_true", help="answers go on to their full length")
    group.add_argument("--logprobs", type=int, metavar="N", help="ask for so many log-probabilities per token")
    for name, kind in SAMPLING.items():
        metavar = "N" if kind is int else "X"
        group.add_argument(f"--{name.replace('_', '-')}", type=kind, metavar=metavar, help="default: the server's")
    group.add_argument("--extra-body", metavar="JSON", help="fields added to each request")
    group.add_argument("--lora-modules", nargs="+", default=[], metavar="NAME", help="adapters to spread requests over")
    group.add_argument("--lora-assignment", choices=("random", "round-robin"), default="random", help="default: random")
    group.add_argument("--request-id-prefix", metavar="TEXT", help="of the header x-request-id (default: random)")
    group.add_argument(
        "--request-timeout-sec", type=float, default=21600.0, metavar="S", help="of one request (default: 21600)"
    )


def _add_report_flags(group: Any) -> None:
    group.add_argument(
        "--percentile-metrics",
        default="ttft,tpot,itl",
        metavar="LIST",
        help="of ttft, tpot, itl, e2el, client_queue_time, e2el_including_client_queue (default: ttft,tpot,itl)",
    )
    group.add_argument("--metric-percentiles", default="99", metavar="LIST", help="such as 50,90,99 (default: 99)")
    group.add_argument(
        "--goodput", nargs="+", default=[], metavar="K:MS", help="limits that count as good: ttft:200 tpot:50 e2el:5000"
    )
    for flag, text in (
        ("--save-result", "write the result as JSON"),
        ("--save-detailed", "with the times and texts of each request"),
        ("--append-result", "add the result to the file"),
        ("--plot-timeline", "draw the run as HTML, and as PNG with the extra `bench`"),
        ("--disable-tqdm", "show no progress"),
    ):
        group.add_argument(flag, action="store_true", help=text)
    group.add_argument("--result-dir", metavar="DIR", help="of files (default: here)")
    group.add_argument("--result-filename", metavar="NAME", help="default: {label}-{rate}qps-{model}-{time}.json")
    group.add_argument("--metadata", nargs="*", default=[], metavar="K=V", help="more keys of the result")
    group.add_argument("--label", metavar="TEXT", help="name of the run (default: the backend)")
    group.add_argument(
        "--timeline-itl-thresholds", default="25,50", metavar="MS,MS", help="where colours change (default: 25,50)"
    )

from octavo.bench.workloads import WORKLOADS, Workload, run_workloads

SMALL = (
    Workload(name="a", num_requests=2, input_len=4, output_len=3),
    Workload(name="b", num_requests=1, input_len=8, output_len=1),
)


class FakeEngine:
    """Takes a second a request; remembers what it was asked."""

    def __init__(self):
        self.clock_s = 0.0
        self.calls = []

    def generate(self, prompts, params, *, use_tqdm):
        self.calls.append(([list(prompt) for prompt in prompts], params))
        self.clock_s += len(prompts)
        return []

    def now_s(self):
        return self.clock_s


def run(engine, rounds=3):
    return run_workloads(engine.generate, SMALL, num_rounds=rounds, vocab_size=100, seed=7, now_s=engine.now_s)


def test_rounds_alternate_between_workloads_after_one_warm_up():
    engine = FakeEngine()
    run(engine, rounds=2)
    assert [len(prompts) for prompts, _ in engine.calls] == [1, 2, 1, 2, 1]


def test_rates_come_from_the_median_run():
    report = run(FakeEngine())
    first = report.as_json()["workloads"][0]
    assert first["seconds"] == [2.0, 2.0, 2.0]
    assert first["input_tokens_per_second"] == 4.0
    assert first["output_tokens_per_second"] == 3.0
    assert "a" in str(report)


def test_no_prompt_is_asked_twice():
    engine = FakeEngine()
    run(engine)
    prompts = [tuple(prompt) for prompts, _ in engine.calls[1:] for prompt in prompts]
    assert len(set(prompts)) == len(prompts)


def test_ends_of_text_are_ignored_and_nothing_is_sampled():
    engine = FakeEngine()
    run(engine)
    assert all(params.ignore_eos and params.is_greedy for _, params in engine.calls)


def test_the_workloads_of_the_comparison_have_distinct_names():
    assert len({workload.name for workload in WORKLOADS}) == len(WORKLOADS)

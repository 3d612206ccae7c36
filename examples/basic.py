"""Offline generation: a list of prompts in, a list of outputs out.

A program written for vLLM's `LLM` and `SamplingParams` runs with the import and the model name changed.
"""

from octavo import LLM, SamplingParams


def main() -> None:
    prompts = [
        "The capital of France is",
        "Water boils at",
        "Once upon a time, a small robot",
    ]
    sampling_params = SamplingParams(temperature=0.8, top_p=0.95)
    llm = LLM(model="smollm2-135m-instruct")
    for output in llm.generate(prompts, sampling_params):
        print(f"{output.prompt!r} -> {output.outputs[0].text!r}")


if __name__ == "__main__":
    main()

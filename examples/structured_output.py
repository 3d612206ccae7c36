"""Texts that have a form: offline, and from a server through OpenAI's client.

python examples/structured_output.py                             # offline
python examples/structured_output.py http://127.0.0.1:8000/v1    # from `octavo serve`; needs `pip install openai`
"""

import json
import sys

from octavo import LLM, SamplingParams, StructuredOutputsParams

PET = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 20},
        "kind": {"enum": ["cat", "dog", "parrot"]},
        "age": {"type": "integer", "minimum": 0, "maximum": 40},
    },
    "required": ["name", "kind", "age"],
    "additionalProperties": False,
}
QUESTION = "Tom is a cat, three years old. Answer with JSON: name, kind, age."


def offline() -> None:
    llm = LLM(model="smollm2-135m-instruct")
    constraints = {
        "a JSON schema": StructuredOutputsParams(json=PET),
        "one of these": StructuredOutputsParams(choice=["cat", "dog", "parrot"]),
        "a regular expression": StructuredOutputsParams(regex=r"Tom is (one|two|three|four) years old\."),
        "a grammar": StructuredOutputsParams(grammar='start: "Tom" " and " NAME\nNAME: /[A-Z][a-z]{2,8}/'),
    }
    for name, constraint in constraints.items():
        params = SamplingParams(temperature=0.0, max_tokens=60, structured_outputs=constraint)
        output = llm.chat([{"role": "user", "content": QUESTION}], params, use_tqdm=False)[0].outputs[0]
        print(f"{name}: {output.text}   ({output.finish_reason})")


def from_server(url: str) -> None:
    from openai import OpenAI

    client = OpenAI(base_url=url, api_key="EMPTY")
    answer = client.chat.completions.create(
        model=client.models.list().data[0].id,
        messages=[{"role": "user", "content": QUESTION}],
        temperature=0,
        max_tokens=60,
        response_format={"type": "json_schema", "json_schema": {"name": "pet", "schema": PET, "strict": True}},
    )
    print(json.loads(answer.choices[0].message.content or ""))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        from_server(sys.argv[1])
    else:
        offline()

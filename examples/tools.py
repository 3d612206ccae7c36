"""A model that calls a function and uses its result: offline, and from a server through OpenAI's client.

octavo pull qwen2.5-coder-0.5b-instruct              # once
python examples/tools.py                             # offline
python examples/tools.py http://127.0.0.1:8000/v1    # from `octavo serve qwen2.5-coder-0.5b-instruct`; needs openai
"""

import json
import sys
from typing import Any

from octavo import LLM, SamplingParams, StructuredOutputsParams

MODEL = "qwen2.5-coder-0.5b-instruct"
PARAMETERS = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 30}, "unit": {"enum": ["celsius", "fahrenheit"]}},
    "required": ["city", "unit"],
    "additionalProperties": False,
}
FUNCTION = {"name": "get_weather", "description": "The weather of a city now.", "parameters": PARAMETERS}
TOOLS = [{"type": "function", "function": FUNCTION}]
QUESTION = {"role": "user", "content": "What is the weather in Paris, in celsius? Use the tool."}
GO_ON = {"role": "user", "content": "Tell me in one sentence, in words."}
"""Models this small repeat their call when they are not asked."""


def get_weather(city: str, unit: str) -> dict[str, Any]:
    """What a real program would look up."""
    return {"city": city, "degrees": 21 if unit == "celsius" else 70, "sky": "clear"}


def offline() -> None:
    """`LLM` renders the tools and constrains the text; that the text is a call is for the caller to know."""
    llm = LLM(model=MODEL, max_model_len=2048)
    call_form = {
        "type": "object",
        "properties": {"name": {"const": "get_weather"}, "arguments": PARAMETERS},
        "required": ["name", "arguments"],
        "additionalProperties": False,
    }
    params = SamplingParams(temperature=0.0, max_tokens=80, structured_outputs=StructuredOutputsParams(json=call_form))
    text = llm.chat([QUESTION], params, tools=TOOLS, use_tqdm=False)[0].outputs[0].text
    call = json.loads(text)
    print("call:", call)
    messages: list[dict[str, Any]] = [
        QUESTION,
        {"role": "assistant", "tool_calls": [{"id": "call-1", "type": "function", "function": call}]},
        {"role": "tool", "tool_call_id": "call-1", "content": json.dumps(get_weather(**call["arguments"]))},
        GO_ON,
    ]
    answer = llm.chat(messages, SamplingParams(temperature=0.0, max_tokens=60), use_tqdm=False)
    print("answer:", answer[0].outputs[0].text)


def from_server(url: str) -> None:
    """The server reads the calls; "required" makes one come, and makes it valid."""
    from openai import OpenAI

    client = OpenAI(base_url=url, api_key="EMPTY")
    common: dict[str, Any] = {"model": client.models.list().data[0].id, "tools": TOOLS, "temperature": 0}
    messages: list[Any] = [QUESTION]
    message = (
        client.chat.completions.create(
            messages=messages, tool_choice="required", parallel_tool_calls=False, max_tokens=80, **common
        )
        .choices[0]
        .message
    )
    messages.append(message.model_dump(exclude_none=True))
    for call in message.tool_calls or ():
        print("call:", call.function.name, call.function.arguments)
        result = get_weather(**json.loads(call.function.arguments))
        messages.append({"role": "tool", "tool_call_id": call.id, "content": json.dumps(result)})
    messages.append(GO_ON)
    answer = client.chat.completions.create(messages=messages, tool_choice="none", max_tokens=60, **common)
    print("answer:", answer.choices[0].message.content)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        from_server(sys.argv[1])
    else:
        offline()

"""Where conversations are read, and as whom messages of developers speak."""

import asyncio
import threading
from types import SimpleNamespace

import pytest

from octavo.engine.input.prompt_pool import PromptPool
from octavo.server.api.chat_types import ChatFields
from octavo.server.chat_conversation import read_apart, read_conversation
from octavo.server.tools import ToolLimits

USER = {"role": "user", "content": "hi"}
DEVELOPER = {"role": "developer", "content": "Be brief."}
TOOL = {"type": "function", "function": {"name": "f"}}
CALLED = {
    "role": "assistant",
    "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
}
KNOWS, KNOWS_NOT = "{% if message.role == 'developer' %}", "{% if message.role == 'system' %}"


def make_service(*templates, pool=None, is_full=False):
    config = SimpleNamespace(max_messages=9, trust_request_chat_template=True, default_chat_template_kwargs={})

    async def preparation():
        return SimpleNamespace(run=pool.run)

    def check(*, num_requests, num_tokens):
        if is_full:
            raise OverflowError

    return SimpleNamespace(
        config=config,
        tool_limits=ToolLimits(max_tools=9, max_bytes=1000, excludes_unused=False),
        chat_templates=templates or ("", ""),
        control_texts=(),
        engine=SimpleNamespace(preparation=preparation),
        admission=SimpleNamespace(check=check),
    )


def roles(service, *messages, **fields):
    talk = read_conversation(ChatFields(messages=[*messages, USER], **fields), service)
    return [(message["role"], message["content"]) for message in talk.messages[:-1]]


def test_developers_speak_as_the_system_where_the_template_does_not_know_them():
    service = make_service(KNOWS_NOT, KNOWS_NOT)
    assert roles(service, DEVELOPER) == [("system", "Be brief.")]
    parts = {"role": "developer", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}
    assert roles(service, {"role": "system", "content": "s"}, parts, DEVELOPER) == [
        ("system", "s\n\na\nb\n\nBe brief.")
    ]
    assert roles(service, DEVELOPER, USER, DEVELOPER) == [
        ("system", "Be brief."),
        ("user", "hi"),
        ("system", "Be brief."),
    ]


def test_developers_stay_where_the_template_knows_them():
    assert roles(make_service(KNOWS, KNOWS_NOT), DEVELOPER) == [("developer", "Be brief.")]


def test_the_template_that_counts_is_the_one_that_is_used():
    service = make_service(KNOWS_NOT, KNOWS)
    assert roles(service, DEVELOPER, tools=[TOOL])[0][0] == "developer"
    assert roles(service, DEVELOPER)[0][0] == "system"
    assert roles(service, DEVELOPER, chat_template=KNOWS)[0][0] == "developer"
    assert roles(make_service(KNOWS, KNOWS), DEVELOPER, chat_template=KNOWS_NOT)[0][0] == "system"


def thread_of_reading(**fields):
    async def scenario():
        pool = PromptPool(max_pending=4, timeout_s=5.0)
        try:
            return await read_apart(ChatFields(**fields), make_service(pool=pool), threading.current_thread)
        finally:
            pool.close()

    return asyncio.run(scenario()).name


@pytest.mark.parametrize("fields", [{"messages": [USER], "tools": [TOOL]}, {"messages": [USER, CALLED]}])
def test_tools_and_calls_are_read_beside_the_event_loop(fields):
    assert thread_of_reading(**fields).startswith("octavo-prompts")


def test_what_is_read_at_once_stays_on_the_event_loop():
    assert thread_of_reading(messages=[USER]) == threading.current_thread().name


def test_a_full_server_does_not_begin_to_read_tools():
    with pytest.raises(OverflowError):
        asyncio.run(read_apart(ChatFields(messages=[USER], tools=[TOOL]), make_service(is_full=True), lambda: None))

"""Templates of strangers: what they make, what they may not, and that nothing of them is left."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from octavo.base.errors import OverloadedError, ValidationError
from octavo.engine.template import renderer as module
from octavo.engine.template.messages import RenderJob
from octavo.engine.template.renderer import TemplateRenderer

ENDLESS = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
HUGE = "{% set ns = namespace(l=[]) %}{% for a in range(90000) %}{% set ns.l = ns.l + ['x' * 100000] %}{% endfor %}"


def job(template, **fields):
    given = {
        "messages": [{"role": "user", "content": "hi"}],
        "tools": None,
        "add_generation_prompt": True,
        "continue_final_message": False,
        "variables": {},
        "special_tokens": {"bos_token": "<s>"},
    }
    return RenderJob(template=template, **(given | fields))


@asynccontextmanager
async def rendering(**options):
    renderer = TemplateRenderer(**options)
    try:
        yield renderer
    finally:
        renderer.close()


def pid_of(renderer):
    return renderer._process._process.pid


def test_a_template_sees_what_the_models_own_would_see():
    async def scenario():
        async with rendering() as renderer:
            text = await renderer.render(job("{{ bos_token }}{{ messages[0].content }}{{ x }}", variables={"x": [1]}))
            assert text == "<s>hi[1]"
            first = pid_of(renderer)
            assert await renderer.render(job("{{ strftime_now('%Y') }}")) >= "2026"
            assert pid_of(renderer) == first

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("{% if %}", "line 1"),
        ("{{ raise_exception('not today') }}", "not today"),
        ("{{ ().__class__.__mro__ }}", "the chat template"),
        (HUGE, "memory"),
    ],
)
def test_a_template_at_fault_is_refused_with_its_cause(template, words):
    async def scenario():
        async with rendering(timeout_s=20.0) as renderer:
            with pytest.raises(ValidationError, match=words):
                await renderer.render(job(template))
            assert await renderer.render(job("{{ messages[0].content }}")) == "hi"

    asyncio.run(scenario())


def test_an_endless_template_is_killed_and_the_next_one_is_rendered_by_a_new_process():
    async def scenario():
        async with rendering(timeout_s=0.3) as renderer:
            assert await renderer.render(job("a")) == "a"
            first = pid_of(renderer)
            with pytest.raises(ValidationError, match="more time or memory") as caught:
                await renderer.render(job(ENDLESS))
            assert caught.value.parameter == "chat_template"
            assert not Path(f"/proc/{first}").exists()
            assert await renderer.render(job("b")) == "b"

    asyncio.run(scenario())


@pytest.mark.slow
def test_the_kernel_ends_a_template_that_uses_up_its_processor_time():
    async def scenario():
        async with rendering(timeout_s=60.0) as renderer:
            with pytest.raises(ValidationError, match="more time or memory"):
                await renderer.render(job(ENDLESS))

    asyncio.run(scenario())


def test_a_client_that_leaves_takes_its_template_along():
    async def scenario():
        async with rendering() as renderer:
            await renderer.render(job("a"))
            first = pid_of(renderer)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(renderer.render(job(ENDLESS)), 0.1)
            assert not Path(f"/proc/{first}").exists()
            assert await renderer.render(job("b")) == "b"

    asyncio.run(scenario())


def test_a_process_that_died_while_idle_is_replaced():
    async def scenario():
        async with rendering() as renderer:
            await renderer.render(job("a"))
            process = renderer._process
            process._process.kill()
            while process.is_alive:
                await asyncio.sleep(0.01)
            assert await renderer.render(job("b")) == "b"

    asyncio.run(scenario())


def test_too_many_waiting_templates_are_refused_at_once(monkeypatch):
    monkeypatch.setattr(module, "MAX_PENDING", 1)

    async def scenario():
        async with rendering() as renderer:
            first = asyncio.create_task(renderer.render(job("a")))
            await asyncio.sleep(0)
            with pytest.raises(OverloadedError):
                await renderer.render(job("b"))
            assert await first == "a"

    asyncio.run(scenario())

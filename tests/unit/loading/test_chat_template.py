import pytest

from octavo.base.errors import ValidationError
from octavo.loading.chat_template import ChatTemplate, TemplateOptions

CHATML = (
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
USER = {"role": "user", "content": "hi"}
CONTINUING = TemplateOptions(continue_final_message=True, add_generation_prompt=False)


def test_the_generation_prompt_is_there_unless_unwanted():
    template = ChatTemplate({"default": CHATML}, {})
    assert template.render([USER], TemplateOptions()) == "<|user|>hi<|end|><|assistant|>"
    assert template.render([USER], TemplateOptions(add_generation_prompt=False)) == "<|user|>hi<|end|>"


def test_special_tokens_and_further_arguments_are_variables():
    template = ChatTemplate({"default": "{{ bos_token }}{{ mood }}{{ tools | length }}"}, {"bos_token": "<s>"})
    assert template.render([USER], TemplateOptions(tools=[{}], variables={"mood": "calm"})) == "<s>calm1"


def test_tools_choose_the_template_made_for_them():
    template = ChatTemplate({"default": "plain", "tool_use": "tools"}, {})
    assert template.render([USER], TemplateOptions()) == template.render([USER], TemplateOptions(tools=[])) == "plain"
    assert template.render([USER], TemplateOptions(tools=[{}])) == "tools"
    assert template.render([USER], TemplateOptions(tools=[{}], chat_template="default")) == "plain"


def test_a_template_may_be_given():
    assert ChatTemplate({}, {}).render([USER], TemplateOptions(chat_template="{{ messages[0].content }}!")) == "hi!"


def test_without_any_template_the_remedy_is_told():
    with pytest.raises(ValidationError, match="pass chat_template"):
        ChatTemplate({"tool_use": "x"}, {}).render([USER], TemplateOptions())


@pytest.mark.parametrize(
    "content", ["The answer", "  The answer", "The answer is ", [{"type": "text", "text": "The answer"}]]
)
def test_a_message_to_be_continued_is_where_the_prompt_ends(content):
    template = ChatTemplate(
        {"default": "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}"}, {}
    )
    text = content if isinstance(content, str) else content[0]["text"]
    shown = [USER, {"role": "assistant", "content": text}]
    given = [USER, {"role": "assistant", "content": content}]
    prompt = template.render(given if isinstance(content, str) else shown, CONTINUING)
    assert prompt == f"<|user|>hi<|end|><|assistant|>{text}"


def test_a_template_that_strips_the_message_ends_behind_its_words():
    template = ChatTemplate({"default": "{{ messages[0].content | trim }}<|end|>"}, {})
    message = {"role": "assistant", "content": " so far "}
    assert template.render([message], CONTINUING) == "so far"


@pytest.mark.parametrize("messages", [[], [{"role": "assistant"}], [{"role": "assistant", "content": "gone"}]])
def test_a_message_that_does_not_show_cannot_be_continued(messages):
    template = ChatTemplate({"default": "nothing"}, {})
    with pytest.raises(ValidationError, match="continue_final_message"):
        template.render(messages, CONTINUING)


def test_continuing_and_beginning_exclude_each_other():
    with pytest.raises(ValidationError, match="add_generation_prompt"):
        ChatTemplate({"default": CHATML}, {}).render([USER], TemplateOptions(continue_final_message=True))

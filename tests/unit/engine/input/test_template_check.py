from __future__ import annotations

import logging

import pytest
from fakes.hf_folder import write_hf_folder

from octavo.base.errors import ConfigError
from octavo.engine.input.template_check import check_chat_template
from octavo.loading import open_checkpoint


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    with open_checkpoint(write_hf_folder(tmp_path_factory.mktemp("model") / "tiny")) as checkpoint:
        return checkpoint.load_tokenizer()


def test_a_template_that_is_no_jinja_ends_the_start_with_its_line(tokenizer):
    with pytest.raises(ConfigError, match=r"chat_template: .*line 2: "):
        check_chat_template(tokenizer, "{{ messages }}\n{% if %}")


def test_a_template_that_refuses_the_trial_is_warned_of(tokenizer, caplog):
    with caplog.at_level(logging.WARNING, "octavo"):
        check_chat_template(tokenizer, "{{ raise_exception('tools only') }}")
    assert "tools only" in caplog.text


def test_good_templates_and_none_at_all_are_quiet(tokenizer, caplog):
    check_chat_template(tokenizer, None)
    check_chat_template(tokenizer, "{{ messages[0].content }}")
    check_chat_template(None, None)
    assert not caplog.text

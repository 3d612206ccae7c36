"""A chat template is tried once at the start, so that a broken one is found by the operator and not by the first chat.

Owns: what is tried, and whether a failure ends the start.   Does not own: templates (loading), finding the file.
"""

from __future__ import annotations

from octavo.base.errors import ConfigError, ConfigProblem, ValidationError
from octavo.base.log import get_logger
from octavo.engine.input.prompts import ChatMessage
from octavo.loading import Tokenizer

logger = get_logger(__name__)

TRIAL: tuple[ChatMessage, ...] = ({"role": "user", "content": "Hello"},)


def check_chat_template(tokenizer: Tokenizer | None, template: str | None) -> None:
    """Parse and render. `template`: of --chat-template, in place of the model's.

    Raises ConfigError, with the line, for a template of the operator's that is no valid Jinja. One that is valid and
    does not render the trial may be made for other conversations, and a model without a usable one of its own still
    completes texts: these are only warned of.
    """
    if tokenizer is None or (template is None and tokenizer.chat_template is None):
        return
    try:
        tokenizer.apply_chat_template(TRIAL, chat_template=template)
    except ValidationError as error:
        if template is not None and error.parameter == "chat_template":
            raise ConfigError([ConfigProblem("chat_template", None, f"cannot be used: {error}")]) from None
        whose = "the model's chat template" if template is None else "the template of --chat-template"
        logger.warning("%s does not render a message of a user: %s", whose, error)

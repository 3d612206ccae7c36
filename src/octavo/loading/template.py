"""Chat templates: Jinja in a sandbox, as Hugging Face's templates expect it.

Owns: the environment (no attribute access to internals, no mutation, bounded text).
Does not own: time limits; a template that comes with a request belongs into a process that can be killed.
"""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.sandbox
from jinja2.compiler import CodeGenerator, Frame

from octavo.base.errors import ValidationError

MAX_TEMPLATE_CHARS = 1 << 20
MAX_OUTPUT_CHARS = 1 << 24
MAX_FILTER_WIDTH = 1 << 12
MAX_INT_BITS = 1 << 12

_WIDE_FORMAT = re.compile(r"\d{4}|%[^a-zA-Z%]*\*|\{[^}]*\{")
_PADDING_METHODS = frozenset(["center", "ljust", "rjust", "zfill", "expandtabs"])


class TemplateLimitError(jinja2.TemplateRuntimeError):
    """A value inside the template grew beyond its bound."""


class _ConcatByEnvironment(CodeGenerator):
    """`a ~ b` goes through the environment, where its size can be checked."""

    def visit_Concat(self, node: jinja2.nodes.Concat, frame: Frame) -> None:  # noqa: N802
        self.write("environment.concat_bounded((")
        for part in node.nodes:
            self.visit(part, frame)
            self.write(", ")
        self.write("))")


class _IgnoreGeneration(jinja2.ext.Extension):
    """`{% generation %}` marks the assistant's text for training; here it is only its content."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Any) -> list[jinja2.nodes.Node]:
        next(parser.stream)
        body: list[jinja2.nodes.Node] = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return body


class _Sandbox(jinja2.sandbox.ImmutableSandboxedEnvironment):
    """Operators that can make large values out of small ones are checked first."""

    code_generator_class = _ConcatByEnvironment
    intercepted_binops = frozenset(["*", "**", "+", "%"])

    def call_binop(self, context: jinja2.runtime.Context, operator: str, left: Any, right: Any) -> Any:
        if operator == "*":
            _check_product(left, right)
        elif operator == "**":
            _check_power(left, right)
        elif operator == "%" and isinstance(left, str):
            _check_format(left)
        result = super().call_binop(context, operator, left, right)
        if isinstance(result, Sequence):
            _check_size(len(result))
        return result

    def call(self, context: jinja2.runtime.Context, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        _check_text_method(function, args)
        return super().call(context, function, *args, **kwargs)

    def concat_bounded(self, parts: Sequence[object]) -> str:
        """Text of all parts."""
        texts = [str(part) for part in parts]
        _check_size(sum(map(len, texts)))
        return "".join(texts)


def compile_template(source: str) -> jinja2.Template:
    """Raises ValidationError (parameter chat_template) when it is too long or not valid Jinja."""
    if len(source) > MAX_TEMPLATE_CHARS:
        raise ValidationError(
            f"chat_template: {len(source)} characters, at most {MAX_TEMPLATE_CHARS}", parameter="chat_template"
        )
    try:
        return _make_environment().from_string(source)
    except (jinja2.TemplateError, RecursionError, OverflowError, ValueError, SyntaxError, MemoryError) as error:
        place = f"line {error.lineno}: " if isinstance(error, jinja2.TemplateSyntaxError) else ""
        message = f"chat_template: not a valid template: {place}{error}"
        raise ValidationError(message, parameter="chat_template") from error


def render_template(template: jinja2.Template, variables: Mapping[str, object]) -> str:
    """The text, at most MAX_OUTPUT_CHARS. Raises ValidationError with the template's own words where it complains."""
    pieces = []
    size = 0
    try:
        for piece in template.generate(**variables):
            size += len(piece)
            _check_size(size)
            pieces.append(piece)
    except jinja2.TemplateError as error:
        raise ValidationError(f"messages: the chat template refuses them: {error}", parameter="messages") from error
    except (TypeError, ValueError, KeyError, IndexError, AttributeError, ArithmeticError, RecursionError) as error:
        raise ValidationError(
            f"messages: the chat template failed on them: {type(error).__name__}: {error}", parameter="messages"
        ) from error
    return "".join(pieces)


def _make_environment() -> _Sandbox:
    environment = _Sandbox(
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=[_IgnoreGeneration, "jinja2.ext.loopcontrols"],
    )
    environment.filters["tojson"] = _to_json
    environment.filters["format"] = _bound_format(environment.filters["format"])
    for name in ("center", "indent"):
        environment.filters[name] = _bound_width(environment.filters[name])
    environment.globals["raise_exception"] = _raise_exception
    environment.globals["strftime_now"] = _strftime_now
    return environment


def _to_json(
    value: object,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """JSON as it is, without the escapes for HTML that Jinja's own filter adds."""
    if isinstance(indent, int) and indent > MAX_FILTER_WIDTH:
        raise TemplateLimitError(f"tojson: indent {indent} is above {MAX_FILTER_WIDTH}")
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _raise_exception(message: str) -> NoReturn:
    raise jinja2.TemplateError(message)


def _strftime_now(layout: str) -> str:
    return datetime.datetime.now().strftime(layout)


def _bound_width(text_filter: Callable[..., Any]) -> Callable[..., Any]:
    def bounded(text: object, width: object = 80, *args: object, **kwargs: object) -> Any:
        size = width if isinstance(width, int) else len(str(width))
        if size > MAX_FILTER_WIDTH:
            raise TemplateLimitError(f"width {size} is above {MAX_FILTER_WIDTH}")
        return text_filter(text, width, *args, **kwargs)

    return bounded


def _bound_format(text_filter: Callable[..., Any]) -> Callable[..., Any]:
    def bounded(text: object, *args: object, **kwargs: object) -> Any:
        _check_format(str(text))
        return text_filter(text, *args, **kwargs)

    return bounded


def _check_format(text: str) -> None:
    """A width or precision inside a format, or one taken from an argument, must be small."""
    if _WIDE_FORMAT.search(text):
        raise TemplateLimitError("the width in a text format is too large")


def _check_text_method(function: Any, args: tuple[Any, ...]) -> None:
    """Text methods that pad: their width is their first argument, or stands in the text."""
    name = getattr(function, "__name__", "")
    owner = getattr(getattr(function, "__wrapped__", function), "__self__", None)
    if not isinstance(owner, str):
        return
    if name in ("format", "format_map"):
        _check_format(owner)
    if name in _PADDING_METHODS and args and isinstance(args[0], int) and args[0] > MAX_FILTER_WIDTH:
        raise TemplateLimitError(f"width {args[0]} is above {MAX_FILTER_WIDTH}")


def _check_size(size: int) -> None:
    if size > MAX_OUTPUT_CHARS:
        raise TemplateLimitError(f"the text is longer than {MAX_OUTPUT_CHARS} characters")


def _check_product(left: Any, right: Any) -> None:
    for value, times in ((left, right), (right, left)):
        if isinstance(times, int):
            if isinstance(value, int):
                _check_bits(value.bit_length() + times.bit_length())
            elif isinstance(value, Sequence):
                _check_size(len(value) * times)


def _check_power(left: Any, right: Any) -> None:
    if isinstance(left, int) and isinstance(right, int):
        _check_bits(left.bit_length() * max(right, 0))


def _check_bits(num_bits: int) -> None:
    if num_bits > MAX_INT_BITS:
        raise TemplateLimitError("an integer grows too large")

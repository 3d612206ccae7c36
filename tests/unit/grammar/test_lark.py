import contextlib
import time

import pytest
from fakes.grammar_tokenizer import make_tokenizer
from fakes.matching import compiled, start, takes

from octavo.base.errors import ValidationError
from octavo.grammar.lark import prepare_grammar
from octavo.grammar.limits import GrammarLimits
from octavo.grammar.problem import SpecError

NUMBER_LIST = """
// comments and strings with marks in them: "%declare", /x/
start: "[" NUMBER ("," NUMBER)* "]"
NUMBER: /-?[0-9]{1,3}/   # another comment
"""
GBNF = r"""
# llama.cpp's form
root ::= "answer: " value ("; " value)*
value ::= [0-9]+ | "\"" [a-z]* "\"" | nested-value
nested-value ::= "(" value ")"
"""


@pytest.mark.parametrize("text", ["[1]", "[-12,345]"])
def test_lark_is_followed(text):
    assert takes(compiled(grammar=NUMBER_LIST), text)


@pytest.mark.parametrize("text", ["[]", "[1234]", "[1,]"])
def test_what_lark_does_not_admit_is_not_taken(text):
    assert not takes(compiled(grammar=NUMBER_LIST), text)


@pytest.mark.parametrize("text", ["answer: 12", 'answer: "ab"; ((7))'])
def test_gbnf_is_followed(text):
    assert takes(compiled(grammar=GBNF), text)


def test_what_gbnf_does_not_admit_is_not_taken():
    assert not takes(compiled(grammar=GBNF), "answer: (7")


def test_left_recursion_is_followed():
    assert takes(compiled(grammar='root ::= root "a" | "b"'), "baaa")


def test_schemas_inside_are_checked_and_followed():
    grammar = compiled(grammar='start: "x=" v\nv: %json {"type": "integer", "uniqueItems": false}')
    assert takes(grammar, "x=12")
    assert not takes(grammar, "x=null")


@pytest.mark.parametrize(
    ("grammar", "words"),
    [
        ("root ::= " + "(" * 30000 + '"a"' + ")" * 30000, "deeper than 100"),
        ("start: " + "(" * 30000 + '"a"' + ")" * 30000, "deeper than 100"),
        ("start: r0\n" + "\n".join(f'r{i}: r{i + 1} "a"' for i in range(5000)), "more than 500 rules"),
        (
            "\n".join(f'r{i} ::= r{i + 1} "a"' for i in range(4000)) + '\nr4000 ::= "a"\nroot ::= r0',
            "more than 500 rules",
        ),
        ("start: " + " | ".join(f'"w{i}"' for i in range(6000)), "alternatives; write them as a terminal"),
        ('start: A\nA: B{1000}\nB: C{1000}\nC: "a"{1000}', "written out"),
        ('start: A\nA: "b" A', "leads to itself"),
        ("start: /(?=a)b/", "look-ahead"),
        ('start: "' + "a" * 20001 + '"', "constant string"),
        ('start: start "a"', "no text can satisfy"),
        ('start: %json {"type": "x"}', "is no type"),
        ("start: %json {", "not followed by JSON"),
        ('start: a\na[stop="x"]: /.*/', "attribute stop"),
        ("start: a\na[lazy, max_tokens=5]: /.*/", "attribute max_tokens"),
        ('%llguidance {"no_forcing": true}\nstart: "a"', "options"),
        ("%declare X\nstart: X", "directive %declare"),
        ("start: <nope>", "special token"),
        ("start: b", "unknown name"),
        ('start: "a', "a string is not closed"),
        ("start: /a", "an expression is not closed"),
        ("root ::= [a", "cannot be read as GBNF from line 1"),
        ("root ::= missing", "no rule"),
        ("just words", "cannot be followed"),
    ],
)
def test_what_cannot_be_followed_is_refused(grammar, words):
    with pytest.raises(ValidationError, match=words) as caught:
        compiled(grammar=grammar)
    assert caught.value.parameter == "structured_outputs.grammar"
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize(
    "text",
    [
        'start: "a"{' + " " * 128_000,
        'start: "' + r"\"" * 64_000,
        "start: /" + r"\/" * 64_000,
        "start: a" + " " * 128_000 + "b",
        "start: " + "a[" * 64_000,
        "start: " + "%json{}" * 16_000,
        'root ::= "a"{' + " " * 128_000,
        'root ::= "' + r"\"" * 64_000,
        "root ::= [" + r"\]" * 64_000,
        "root ::= a" + " " * 128_000 + "b",
        "\n" * 128_000 + "root",
    ],
    ids=lambda text: repr(text.strip()[:14]),
)
def test_a_grammar_that_never_closes_what_it_opens_takes_linear_time(text):
    start_s = time.thread_time()
    with contextlib.suppress(SpecError):
        prepare_grammar(text, GrammarLimits())
    # Quadratic work would take half a minute and more.
    assert time.thread_time() - start_s < 5


def test_a_terminal_may_have_thousands_of_alternatives():
    grammar = compiled(grammar="start: T\nT: " + " | ".join(f'"w{i}"' for i in range(4000)))
    assert takes(grammar, "w3999")


def test_errors_do_not_list_the_tokenizer_s_tokens():
    with pytest.raises(ValidationError) as caught:
        compiled(grammar="start: <nope>")
    assert "tool_call" not in str(caught.value)


def test_special_tokens_can_be_named():
    matcher = start(grammar='start: <tool_call> "x"')
    assert matcher.forced_tokens()[0] == make_tokenizer().token_to_id("<tool_call>")

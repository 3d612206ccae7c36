import pytest
from fakes.matching import compiled, takes

from octavo.grammar.gbnf import gbnf_to_lark, is_gbnf
from octavo.grammar.problem import SpecError

JSON = r"""
root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws
object ::= "{" ws ( string ":" ws value ("," ws string ":" ws value)* )? "}" ws
array  ::= "[" ws ( value ("," ws value)* )? "]" ws
string ::= "\"" ( [^"\\\x7F\x00-\x1F] | "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}) )* "\"" ws
number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,15})? ws
ws     ::= | " " | "\n" [ \t]{0,20}   # at most a little
"""


@pytest.mark.parametrize("text", ["{}", '{"a": [1, -2.5e3, "x\\n\\u00e9é"], "b": {"c": null}}'])
def test_the_grammar_of_json_is_followed(text):
    assert takes(compiled(grammar=JSON), text)


@pytest.mark.parametrize("text", ["[1]", '{"a" 1}', '{"a": 01}', '{"a": "\n"}', "{} {"])
def test_what_is_no_json_object_is_not_taken(text):
    assert not takes(compiled(grammar=JSON), text)


@pytest.mark.parametrize(
    ("body", "text", "other"),
    [
        (r'"\x41é\u00e9\U0001F600\t"', "Aéé😀\t", "A"),
        ("[a-c^-]+", "a^-b", "d"),
        ("[^a-c]", "d", "a"),
        (r"[\]\[\\/]", "/", "x"),
        ('"a"{2,3}', "aa", "a"),
        ('("a" | "b")? "c"', "bc", "abc"),
        (". .", "x\n", "x"),
        ('"a" #  "b"\n  "c"', "ac", "abc"),
        ("digit-s other_1\ndigit-s ::= [0-9]\nother_1 ::= digit-s digit-s", "123", "12"),
    ],
)
def test_each_construct(body, text, other):
    grammar = compiled(grammar=f"root ::= {body}")
    assert takes(grammar, text)
    assert not takes(grammar, other)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('a ::= "x"', "no rule root"),
        ("root ::= b", "'b', which is no rule"),
        ('root ::= "x"\nroot ::= "y"', "twice"),
        ('"x"\nroot ::= "y"', "before the first rule"),
        ('root ::= "x"\na ::= $', "line 2"),
        ("root ::= []", "empty"),
        (r"root ::= [\UFFFFFFFF]", "no character"),
    ],
)
def test_what_cannot_be_read_is_refused(text, words):
    with pytest.raises(SpecError, match=words):
        gbnf_to_lark(text)


def test_lark_is_not_taken_for_gbnf():
    assert not is_gbnf('start: "a ::= b"')
    assert is_gbnf("  root::=x")


def test_chains_of_rules_take_linear_time():
    text = "root ::= r0\n" + "\n".join(f'r{i} ::= r{i + 1} "a"' for i in range(4000)) + '\nr4000 ::= "a"'
    assert gbnf_to_lark(text).count("\n") == 4001

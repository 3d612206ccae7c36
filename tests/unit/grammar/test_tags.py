import pytest
from fakes.grammar_tokenizer import encode, make_tokenizer
from fakes.matching import compiled, mask_of, start, takes

from octavo.base.errors import ValidationError

ARGS = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}
OLD = {
    "type": "structural_tag",
    "structures": [
        {"begin": "<f=add>", "schema": ARGS, "end": "</f>"},
        {"begin": "<f=now>", "schema": {"type": "object", "maxProperties": 0}, "end": "</f>"},
    ],
    "triggers": ["<f="],
}


def tag(begin, content, end=""):
    return {"type": "tag", "begin": begin, "content": content, "end": end}


def schema(value):
    return {"type": "json_schema", "json_schema": value}


def const(value):
    return {"type": "const_string", "value": value}


def of(form):
    return compiled(structural_tag={"type": "structural_tag", "format": form})


def triggered(**options):
    tags = [tag("<tool_call>\n", schema(ARGS), "\n</tool_call>"), tag("<tool_call>!", const("x"))]
    return of({"type": "triggered_tags", "triggers": ["<tool_call>"], "tags": tags, **options})


CALL = '<tool_call>\n{"n": 1}\n</tool_call>'


@pytest.mark.parametrize(
    ("text", "is_taken"),
    [
        ("free text, with < and <f", True),
        ('text <f=add>{"n": 5}</f> more <f=now>{}</f>', True),
        ("<f=add>{}</f>", False),
        ("<f=other>", False),
        ('<f=add>{"n":5}', False),
        ('<f=add>{"n":5}<f', False),
        ("", True),
    ],
)
def test_structures_constrain_what_follows_their_triggers(text, is_taken):
    assert takes(compiled(structural_tag=OLD), text) is is_taken


@pytest.mark.parametrize(
    ("options", "text", "is_taken"),
    [
        ({}, "some text", True),
        ({}, f"text {CALL} and {CALL}{CALL} text", True),
        ({}, "<tool_call>!x free", True),
        ({}, "<tool_call> free", False),
        ({}, '<tool_call>\n{"n":1}', False),
        ({"stop_after_first": True}, f"text {CALL}", True),
        ({"stop_after_first": True}, f"{CALL} ", False),
        ({"at_least_one": True}, CALL, True),
        ({"at_least_one": True}, f"{CALL} text", True),
        ({"at_least_one": True}, "text", False),
        ({"at_least_one": True, "stop_after_first": True}, f"{CALL}{CALL}", False),
    ],
)
def test_triggered_tags(options, text, is_taken):
    assert takes(triggered(**options), text) is is_taken


def test_markers_that_are_special_tokens_are_matched_as_tokens():
    call_id = make_tokenizer().token_to_id("<tool_call>")
    matcher = triggered(stop_after_first=True).start()
    assert call_id in mask_of(matcher)
    matcher.accept([call_id])
    assert {make_tokenizer().decode([int(idx)])[0] for idx in mask_of(matcher)} == {"\n", "!"}
    matcher.accept(encode('\n{"n":2}\n'))
    assert matcher.forced_tokens() == [make_tokenizer().token_to_id("</tool_call>")]


def test_the_text_of_a_special_token_written_in_pieces_is_free_text():
    pieces = [make_tokenizer().token_to_id(char) for char in "<tool_call>"]
    matcher = triggered().start()
    matcher.accept([*pieces, *encode(" x")])
    assert matcher.is_accepting


@pytest.mark.parametrize(
    ("options", "text", "is_taken"),
    [
        ({}, "", True),
        ({}, "<a>1</a>, <b>null</b>", True),
        ({}, "<a>1</a><b>null</b>", False),
        ({}, "text", False),
        ({"at_least_one": True}, "", False),
        ({"at_least_one": True}, "<b>null</b>, <b>null</b>", True),
        ({"at_least_one": True, "stop_after_first": True}, "<a>1</a>", True),
        ({"stop_after_first": True}, "<a>1</a>, <a>1</a>", False),
        ({"separator": ""}, "<a>1</a><a>1</a>", True),
    ],
)
def test_tags_with_separator(options, text, is_taken):
    tags = [tag("<a>", schema({"type": "integer"}), "</a>"), tag("<b>", schema({"type": "null"}), "</b>")]
    assert takes(of({"type": "tags_with_separator", "separator": ", ", "tags": tags, **options}), text) is is_taken


@pytest.mark.parametrize(
    ("form", "text", "is_taken"),
    [
        (const("a/b\n\"é\""), "a/b\n\"é\"", True),
        ({"type": "any_text"}, "any\nthing", True),
        ({"type": "regex", "pattern": "[a-c]/d"}, "b/d", True),
        ({"type": "or", "elements": [const("x"), schema({"type": "integer"})]}, "12", True),
        ({"type": "or", "elements": [const("x"), schema({"type": "integer"})]}, "y", False),
        ({"type": "sequence", "elements": [const("n="), schema({"type": "integer"}), const(";")]}, "n=5;", True),
        ({"type": "sequence", "elements": [{"type": "any_text"}, const("END")]}, "text\nEND", True),
        ({"type": "sequence", "elements": [{"type": "any_text"}, const("END")]}, "text END more END", False),
        (tag("<t>", {"type": "any_text"}, "</t>"), "<t>a < b</t>", True),
        (tag("<t>", {"type": "any_text"}, "</t>"), "<t>a</t>b</t>", False),
        (tag("<t>", {"type": "any_text"}, ["</t>", "<end/>"]), "<t>a<end/>", True),
        (tag(["<t>", "<u>"], const("x"), "</t>"), "<u>x</t>", True),
        (tag("<think>", {"type": "any_text"}, "</tool_call>"), "<think>so</tool_call>", True),
        ({"type": "optional", "content": const("x")}, "", True),
        ({"type": "plus", "content": const("x")}, "xxx", True),
        ({"type": "plus", "content": const("x")}, "", False),
        ({"type": "star", "content": const("x")}, "", True),
        ({"type": "sequence", "elements": [const("<think>"), {"type": "optional", "content": const("y")},
                                           {"type": "triggered_tags", "triggers": ["<f"],
                                            "tags": [tag("<f>", const("1"))]}]}, "<think>a <f>1 b", True),
    ],
)  # fmt: skip
def test_formats(form, text, is_taken):
    assert takes(of(form), text) is is_taken


@pytest.mark.parametrize(
    ("form", "pointer"),
    [
        ({"type": "grammar", "grammar": "root ::= x"}, "/format/type"),
        ({}, "/format/type"),
        ("text", "/format"),
        (schema({"type": "x"}), "/format/json_schema/type"),
        (tag("<a>", schema({"properties": {"q": {"not": {}}}})), "/format/content/json_schema/properties/q/not"),
        ({"type": "sequence", "elements": [const("a"), schema({"oneOf": [{}, {}]})]},
         "/format/elements/1/json_schema/oneOf"),
        ({"type": "json_schema"}, "/format"),
        ({"type": "json_schema", "json_schema": {}, "style": "qwen_xml"}, "/format/style"),
        ({"type": "sequence", "elements": []}, "/format/elements"),
        ({"type": "sequence", "elements": [{"type": "any_text"}, schema({})]}, "/format/elements/0"),
        ({"type": "regex", "pattern": "(?=a)"}, "/format/pattern"),
        ({"type": "any_text", "excludes": ["x"]}, "/format/excludes"),
        (tag("", const("x")), "/format/begin"),
        (tag("<a>", const("x"), 5), "/format/end"),
        (tag("<a>", {"type": "or", "elements": [const("x"), {"type": "any_text"}]}, "</a>"), "/format/content"),
        ({"type": "triggered_tags", "triggers": [], "tags": [tag("<a>", const("x"))]}, "/format/triggers"),
        ({"type": "triggered_tags", "triggers": ["<b"], "tags": [tag("<a>", const("x"))]}, "/format/tags/0/begin"),
        ({"type": "triggered_tags", "triggers": ["<"], "tags": [tag("<a>", const("x"))], "at_least_one": 1},
         "/format/at_least_one"),
    ],
)  # fmt: skip
def test_the_place_of_the_fault_is_named(form, pointer):
    with pytest.raises(ValidationError) as caught:
        of(form)
    assert caught.value.value == pointer
    assert caught.value.parameter == "structured_outputs.structural_tag"


@pytest.mark.parametrize(
    "document", [{"type": "other"}, {"type": "structural_tag"}, {"structures": [], "triggers": ["<"]}]
)
def test_documents_that_hold_no_tags_are_refused(document):
    with pytest.raises(ValidationError):
        compiled(structural_tag=document)


def test_options_of_json_hold_inside_tags():
    grammar = compiled(structural_tag={"format": schema(ARGS)}, disable_any_whitespace=True)
    assert takes(grammar, '{"n":1}')
    assert not takes(grammar, '{"n": 1}')


def test_thousands_of_tags_are_bounded():
    tags = [tag(f"<f{i}>", const("x"), "</f>") for i in range(5000)]
    with pytest.raises(ValidationError, match=r"bytes|parts"):
        of({"type": "triggered_tags", "triggers": ["<f"], "tags": tags})


def test_a_hundred_tools_are_followed():
    tags = [tag(f'<tool_call>{{"name": "f{i}", "arguments": ', schema(ARGS), "}</tool_call>") for i in range(100)]
    grammar = of({"type": "triggered_tags", "triggers": ["<tool_call>"], "tags": tags})
    assert takes(grammar, 'text <tool_call>{"name": "f57", "arguments": {"n": 5}}</tool_call>')
    assert not takes(grammar, '<tool_call>{"name": "f100", "arguments": {"n": 5}}</tool_call>')


def test_calls_may_end_with_the_tag_begun_alone():
    matcher = start(structural_tag=OLD)
    matcher.accept(encode("<f=add>"))
    assert not matcher.is_accepting

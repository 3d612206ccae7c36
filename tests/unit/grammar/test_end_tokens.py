import pytest
from fakes.grammar_tokenizer import CALL, EOS_TEXT
from fakes.matching import compiled

from octavo.base.errors import ValidationError


def const(value):
    return {"type": "const_string", "value": value}


def tag(end, content=None, begin="<a>"):
    return {"type": "tag", "begin": begin, "content": content or const("x"), "end": end}


def sequence(*elements):
    return {"type": "sequence", "elements": list(elements)}


def tags(kind, end, **options):
    return {"type": kind, "tags": [tag(end)], **options}


@pytest.mark.parametrize(
    ("form", "pointer"),
    [
        (const(f"a{EOS_TEXT}b"), "/format/value"),
        (const(EOS_TEXT * 2), "/format/value"),
        (tag("</a>", begin=f"<a>{EOS_TEXT}"), "/format/begin"),
        (tag("</a>", const(EOS_TEXT)), "/format/content/value"),
        (tag(["</a>", f"{EOS_TEXT}</a>"]), "/format/end"),
        (sequence(tag(EOS_TEXT), const("b")), "/format/elements/0/end"),
        (sequence({"type": "any_text"}, const(EOS_TEXT), const("b")), "/format/elements/1/value"),
        ({"type": "star", "content": tag(EOS_TEXT)}, "/format/content/end"),
        ({"type": "plus", "content": const(EOS_TEXT)}, "/format/content/value"),
        (tags("triggered_tags", EOS_TEXT, triggers=["<a"]), "/format/tags/0/end"),
        (tags("triggered_tags", "</a>", triggers=[f"<a{EOS_TEXT}"]), "/format/triggers"),
        (tags("tags_with_separator", EOS_TEXT, separator=","), "/format/tags/0/end"),
        (tags("tags_with_separator", "</a>", separator=EOS_TEXT), "/format/separator"),
    ],
)
def test_an_end_token_that_more_would_follow_is_refused(form, pointer):
    with pytest.raises(ValidationError, match=f'at "{pointer}": holds a token that ends the text'):
        compiled(structural_tag={"format": form})


def test_free_text_follows_every_structure():
    structure = {"begin": "<a>", "schema": {}, "end": EOS_TEXT}
    with pytest.raises(ValidationError, match='at "/structures/0/end": holds a token'):
        compiled(structural_tag={"structures": [structure], "triggers": ["<a"]})


@pytest.mark.parametrize(
    "form",
    [
        const(f"a{EOS_TEXT}"),
        tag(EOS_TEXT, begin=CALL),
        tag("", const(f"x{EOS_TEXT}")),
        tag(["</a>", f"</b>{EOS_TEXT}"]),
        sequence(const("a"), {"type": "or", "elements": [const("b"), tag(EOS_TEXT)]}),
        {"type": "optional", "content": tag(EOS_TEXT)},
        tags("triggered_tags", EOS_TEXT, triggers=["<a"], stop_after_first=True),
        tags("tags_with_separator", EOS_TEXT, separator=",", stop_after_first=True),
    ],
)
def test_an_end_token_at_the_end_is_taken(form):
    compiled(structural_tag={"format": form})


@pytest.mark.parametrize("form", [{"type": "sequence", "elements": 3}, {"type": "tag", "begin": 3}, {"type": []}, 3])
def test_what_is_no_tag_is_refused_for_what_it_is(form):
    with pytest.raises(ValidationError) as caught:
        compiled(structural_tag={"format": form})
    assert "ends the text" not in str(caught.value)

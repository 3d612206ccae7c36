import pytest

from octavo.server.errors import ApiError
from octavo.server.text_parts import TextParts

PARTS = TextParts(kinds={"text": "text", "refusal": "no"}, param="input")
BARE = TextParts(kinds={"text": "text"}, param="input", may_be_bare=True)
A = {"type": "text", "text": "a"}


@pytest.mark.parametrize(
    ("content", "text"), [("a", "a"), ([], ""), ([A], "a"), ([A, {"type": "refusal", "no": "b"}], "a\nb")]
)
def test_parts_become_one_text(content, text):
    assert PARTS.read(content, "input") == text


def test_a_text_is_a_part_only_where_it_may_be():
    assert BARE.read([A, "b"], "input") == "a\nb"
    with pytest.raises(ApiError, match=r"input\[1\]\.type=None: this model reads text only"):
        PARTS.read([A, "b"], "input")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (5, "input=5: must be a text or a list of parts"),
        ([A, {"type": "image"}], r"input\[1\]\.type='image': this model reads text only"),
        ([{"type": []}], r"input\[0\]\.type=\[\]: this model reads text only"),
        ([{"type": "refusal", "no": 1}], r"input\[0\]\.no=1: must be a text"),
    ],
)
def test_what_is_no_text_is_refused_by_its_place(content, message):
    with pytest.raises(ApiError, match=message) as refused:
        PARTS.read(content, "input")
    assert refused.value.param == "input"

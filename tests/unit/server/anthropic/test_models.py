import pytest

from octavo.server.anthropic.models import PageRequest, read_page_request, take_page
from octavo.server.errors import ApiError

NAMES = ("a", "b", "c", "d")


@pytest.mark.parametrize(
    ("page", "names", "has_more"),
    [
        (PageRequest(), "abcd", False),
        (PageRequest(4), "abcd", False),
        (PageRequest(3), "abc", True),
        (PageRequest(2, after_id="a"), "bc", True),
        (PageRequest(2, after_id="b"), "cd", False),
        (PageRequest(2, after_id="d"), "", False),
        (PageRequest(2, before_id="d"), "bc", True),
        (PageRequest(2, before_id="c"), "ab", False),
        (PageRequest(2, before_id="a"), "", False),
    ],
)
def test_a_page_is_beside_its_cursor(page, names, has_more):
    assert take_page(NAMES, page) == (list(names), has_more)


@pytest.mark.parametrize("field", ["after_id", "before_id"])
def test_a_cursor_that_is_no_model_is_named(field):
    with pytest.raises(ApiError, match=f"{field}='x'") as refused:
        take_page(NAMES, PageRequest(**{field: "x"}))
    assert (refused.value.status, refused.value.param) == (400, field)


def test_a_query_says_which_page():
    assert read_page_request(b"") == PageRequest()
    assert read_page_request(b"limit=7&after_id=a%2Fb&other=1") == PageRequest(7, after_id="a/b")
    assert read_page_request(b"before_id=c") == PageRequest(before_id="c")


@pytest.mark.parametrize(
    ("query", "field"),
    [
        (b"limit=0", "limit"),
        (b"limit=1001", "limit"),
        (b"limit=-1", "limit"),
        (b"limit=x", "limit"),
        ("limit=²".encode("latin-1"), "limit"),
        (b"limit=" + b"9" * 5000, "limit"),
        (b"after_id=a&before_id=b", "before_id"),
    ],
)
def test_a_query_that_means_no_page_is_refused(query, field):
    with pytest.raises(ApiError) as refused:
        read_page_request(query)
    assert (refused.value.status, refused.value.param) == (400, field)
    assert len(refused.value.message) < 200

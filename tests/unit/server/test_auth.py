import pytest

from octavo.server.auth import ApiKeys


def test_without_keys_everybody_passes():
    assert ApiKeys([]).accepts([])


@pytest.mark.parametrize("key", ["one", "two", "schlüssel"])
def test_each_of_several_keys_opens(key):
    assert ApiKeys(["one", "two", "schlüssel"]).accepts([b"Bearer " + key.encode()])


@pytest.mark.parametrize(
    "headers",
    [[], [b""], [b"Bearer"], [b"Bearer "], [b"bearer one"], [b"Bearer one "], [b"Bearer onf"], [b"Bearer one"] * 2],
)
def test_anything_but_one_whole_key_does_not(headers):
    assert not ApiKeys(["one"]).accepts(headers)


@pytest.mark.parametrize(
    ("bearer", "api_key", "passes"),
    [
        ([], [b"one"], True),
        ([b"Bearer one"], [b"wrong"], True),
        ([b"Bearer wrong"], [b"one"], True),
        ([b"Bearer wrong"], [b"wrong"], False),
        ([], [b""], False),
        ([], [b"Bearer one"], False),
        ([], [b"one"] * 2, False),
    ],
)
def test_where_a_key_may_have_a_header_of_its_own_either_opens(bearer, api_key, passes):
    assert ApiKeys(["one"]).accepts(bearer, api_key) is passes

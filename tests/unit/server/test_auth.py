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

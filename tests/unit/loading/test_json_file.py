import pytest

from octavo.base.errors import LoadError
from octavo.loading import json_file
from octavo.loading.json_file import read_json_object, read_optional_json_object


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not valid JSON"),
        (b"[1]", "must be a JSON object, not list"),
        (b"null", "must be a JSON object"),
        (b'{"a": 1, "a": 2}', "'a' appears twice"),
        (b'{"a": {"b": 1, "b": 2}}', "'b' appears twice"),
        (b'{"a": "\xff"}', "not UTF-8"),
        (b'{"a": ' + b"[" * 100_000, "not valid JSON"),
        (b'{"a": ' + b"9" * 10_000 + b"}", "not valid JSON"),
    ],
)
def test_a_file_that_is_no_object_is_one_error_naming_it(tmp_path, content, message):
    path = tmp_path / "config.json"
    path.write_bytes(content)
    with pytest.raises(LoadError, match=message) as caught:
        read_json_object(path)
    assert str(path) in str(caught.value)


def test_files_have_a_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(json_file, "MAX_JSON_BYTES", 10)
    (tmp_path / "config.json").write_text('{"a": "0123456789"}')
    with pytest.raises(LoadError, match="at most 10"):
        read_json_object(tmp_path / "config.json")


def test_an_optional_file_may_be_absent(tmp_path):
    assert read_optional_json_object(tmp_path / "gone.json") == {}
    with pytest.raises(LoadError, match=r"gone\.json"):
        read_json_object(tmp_path / "gone.json")

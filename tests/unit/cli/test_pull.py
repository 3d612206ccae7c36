import pytest

from octavo.cli.main import main
from octavo.loading.cache import cached_path


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("OCTAVO_HOME", str(tmp_path))


def put_in_cache(name):
    path = cached_path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"12345678")
    return path


def test_the_path_of_each_model_is_printed(capsys):
    paths = [put_in_cache(name) for name in ("gemma-3-270m", "smollm2-135m-instruct")]
    assert main(["pull", "gemma-3-270m", "smollm2-135m-instruct"]) == 0
    assert capsys.readouterr().out.split() == [str(path) for path in paths]


def test_without_a_name_it_is_the_default_model(capsys):
    path = put_in_cache("smollm2-135m-instruct")
    assert main(["pull", "--quiet"]) == 0
    assert capsys.readouterr().out.strip() == str(path)


def test_an_unknown_model_fails_with_the_near_names(capsys):
    assert main(["pull", "smollm"]) == 1
    assert "smollm2-135m-instruct" in capsys.readouterr().err

import json

from octavo.cli.collect_env import collect, format_facts
from octavo.cli.main import main


def test_text_and_json_say_the_same(capsys):
    assert main(["collect-env", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert main(["collect-env"]) == 0
    text = capsys.readouterr().out
    assert set(facts) == {"versions", "processor", "memory", "environment"}
    assert all(name in text for section in facts.values() for name in section)
    assert facts["versions"]["python"] in text


def test_the_processor_is_described():
    processor = collect()["processor"]
    assert int(processor["cores usable"]) >= 1
    assert not processor["features"].startswith("unknown")


def test_what_cannot_be_read_says_so(tmp_path):
    facts = collect(root=tmp_path)
    assert facts["memory"]["total"].startswith("unknown")
    assert facts["memory"]["transparent huge pages"].startswith("unknown")
    assert facts["processor"]["model"].startswith("unknown")


def test_secrets_are_named_but_not_shown(monkeypatch):
    monkeypatch.setenv("OCTAVO_HF_TOKEN", "hf_secret")
    monkeypatch.setenv("OCTAVO_SEED", "5")
    environment = collect()["environment"]
    assert environment["OCTAVO_HF_TOKEN"] == "(set)"
    assert environment["OCTAVO_SEED"] == "5"


def test_an_empty_section_is_shown_as_such():
    assert "(nothing set)" in format_facts({"environment": {}})

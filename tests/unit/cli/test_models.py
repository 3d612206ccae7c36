import json

from octavo.cli.main import main
from octavo.loading.aliases import ALIASES
from octavo.loading.cache import cached_path


def test_aliases_and_cached_files_are_listed(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("OCTAVO_HOME", str(tmp_path))
    path = cached_path("gemma-3-270m")
    path.parent.mkdir()
    path.write_bytes(bytes(2048))
    cached_path("mine").write_bytes(b"1")
    assert main(["models"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in (*ALIASES, "mine"))
    assert str(path) in out
    assert "octavo pull smollm2-135m-instruct" in out

    assert main(["models", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert (rows["gemma-3-270m"]["path"], rows["gemma-3-270m"]["num_bytes"]) == (str(path), 2048)
    assert rows["smollm2-135m-instruct"]["path"] is None

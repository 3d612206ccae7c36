from pathlib import Path

from octavo.loading.cache import CachedModel, cache_dir, cached_path, list_cached


def test_the_folder_can_be_chosen(monkeypatch, tmp_path):
    monkeypatch.setenv("OCTAVO_HOME", str(tmp_path))
    assert cache_dir() == tmp_path
    assert cached_path("x") == tmp_path / "models" / "x.gguf"
    monkeypatch.delenv("OCTAVO_HOME")
    assert cache_dir() == Path.home() / ".cache" / "octavo"


def test_only_whole_files_are_listed_by_name(tmp_path):
    assert list_cached(tmp_path) == []
    (tmp_path / "models").mkdir()
    (tmp_path / "tmp").mkdir()
    for name in ("b", "a"):
        cached_path(name, tmp_path).write_bytes(b"1234")
    (tmp_path / "tmp" / "c.gguf").touch()
    assert list_cached(tmp_path) == [CachedModel(name, cached_path(name, tmp_path), 4) for name in ("a", "b")]

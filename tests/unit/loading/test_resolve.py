import json

import huggingface_hub
import pytest
from fakes.hf_folder import write_hf_folder

from octavo.base.errors import LoadError, ModelNotFoundError
from octavo.loading import open_checkpoint, resolve_model
from octavo.loading.cache import cached_path


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("OCTAVO_HOME", str(tmp_path / "octavo"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """The hub: answers with `answer`, or raises it. Local look-ups are the real ones, or raise `local_error`."""

    class Hub:
        answer = ConnectionError("hub is not reachable\nmore")
        local_error = None
        calls = ()

    real = huggingface_hub.snapshot_download

    def snapshot_download(repo_id, **kwargs):
        if kwargs["local_files_only"]:
            if Hub.local_error is not None:
                raise Hub.local_error
            return real(repo_id, **kwargs)
        Hub.calls = (*Hub.calls, kwargs)
        if isinstance(Hub.answer, Exception):
            raise Hub.answer
        return str(Hub.answer)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    return Hub


def write_snapshot(cache, repo_id, revision="main", commit="a" * 40):
    """A model in the layout of the hub's cache."""
    root = cache / f"models--{repo_id.replace('/', '--')}"
    (root / "refs").mkdir(parents=True, exist_ok=True)
    (root / "refs" / revision).write_text(commit)
    return write_hf_folder(root / "snapshots" / commit)


def test_an_alias_is_its_file_in_the_cache():
    path = cached_path("gemma-3-270m")
    path.parent.mkdir(parents=True)
    path.touch()
    assert resolve_model("gemma-3-270m") == path


def test_an_alias_that_is_not_there_says_how_to_get_it():
    with pytest.raises(ModelNotFoundError, match="octavo pull gemma-3-270m"):
        resolve_model("gemma-3-270m")


def test_paths_are_taken_as_they_are(tmp_path, monkeypatch):
    folder = write_hf_folder(tmp_path / "owner" / "name")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert resolve_model(str(folder)) == folder
    assert resolve_model("owner/name").samefile(folder)
    assert resolve_model("~/owner/name") == folder


@pytest.mark.parametrize(
    "name", ["smollm", "smollm2-135m", "./smollm2-135m-instruct", "owner/smollm2-135m-instruct.gguf"]
)
def test_a_near_name_suggests_the_alias(name):
    with pytest.raises(ModelNotFoundError, match=r"did you mean smollm2-135m-instruct.*octavo pull"):
        resolve_model(name)


@pytest.mark.parametrize("name", ["", "zzzz", "/no/such/folder/zzzz", "a/b/c/zzzz"])
def test_a_far_name_lists_what_there_is(name):
    with pytest.raises(ModelNotFoundError, match="fetches one of smollm2"):
        resolve_model(name)


def test_a_hub_id_is_found_in_the_local_cache_first(tmp_path, hub):
    snapshot = write_snapshot(tmp_path / "hub", "owner/tiny")
    path = resolve_model("owner/tiny", download_dir=tmp_path / "hub")
    assert path.samefile(snapshot)
    assert hub.calls == ()
    open_checkpoint(path).close()


def test_the_revision_chooses_the_snapshot(tmp_path, hub):
    write_snapshot(tmp_path / "hub", "owner/tiny")
    other = write_snapshot(tmp_path / "hub", "owner/tiny", "v2", "b" * 40)
    assert resolve_model("owner/tiny", download_dir=tmp_path / "hub", revision="v2").samefile(other)


def test_an_incomplete_snapshot_is_fetched_again(tmp_path, hub):
    snapshot = write_snapshot(tmp_path / "hub", "owner/tiny")
    (snapshot / "model.safetensors").unlink()
    hub.answer = write_hf_folder(tmp_path / "fetched")
    assert resolve_model("owner/tiny", download_dir=tmp_path / "hub") == hub.answer
    index = {"weight_map": {"x": "gone.safetensors"}}
    (snapshot / "model.safetensors.index.json").write_text(json.dumps(index))
    assert resolve_model("owner/tiny", download_dir=tmp_path / "hub") == hub.answer


def test_only_data_is_asked_for(tmp_path, hub):
    hub.answer = write_hf_folder(tmp_path / "fetched")
    resolve_model("owner/tiny", download_dir=tmp_path / "hub", revision="v3", token="secret")
    (call,) = hub.calls
    assert (call["revision"], call["token"], call["cache_dir"]) == ("v3", "secret", tmp_path / "hub")
    assert not any(pattern.endswith((".py", ".bin", "*")) for pattern in call["allow_patterns"])


def test_a_hub_that_does_not_answer_is_one_line(tmp_path, hub):
    with pytest.raises(ModelNotFoundError, match=r"owner/tiny.*hub is not reachable") as caught:
        resolve_model("owner/tiny", download_dir=tmp_path / "hub")
    assert "\n" not in str(caught.value)


def test_a_repository_without_safetensors_is_refused(tmp_path, hub):
    hub.answer = tmp_path
    with pytest.raises(LoadError, match="safetensors"):
        resolve_model("owner/tiny", download_dir=tmp_path / "hub")


@pytest.mark.parametrize("error", [PermissionError("cache"), ValueError("damaged cache")])
def test_a_local_cache_that_cannot_be_read_is_left_for_the_hub(tmp_path, hub, error):
    hub.local_error = error
    hub.answer = write_hf_folder(tmp_path / "fetched")
    assert resolve_model("owner/tiny", download_dir=tmp_path / "hub") == hub.answer


def test_a_wrong_call_of_the_client_is_not_hidden(tmp_path, hub):
    hub.local_error = TypeError("unexpected keyword")
    with pytest.raises(TypeError, match="unexpected keyword"):
        resolve_model("owner/tiny", download_dir=tmp_path / "hub")
    assert hub.calls == ()

import pytest

from octavo.base.errors import ConfigError
from octavo.config.load import load_config
from octavo.server.listener import bind_tcp, bind_unix, load_tls
from octavo.server.server import bind, non_default


def test_given_options_are_shown_and_secrets_only_by_name():
    given = {"port": 9, "api_key": "secret", "seed": 0, "hf_token": "secret"}
    assert non_default(load_config(given, env={})) == {"port": 9, "api_key": "***", "hf_token": "***"}


def test_a_taken_port_is_said_with_the_flag():
    with bind_tcp("127.0.0.1", 0) as taken, pytest.raises(ConfigError, match="--port"):
        bind_tcp("127.0.0.1", taken.getsockname()[1])


def test_a_host_that_does_not_exist_is_said_with_the_flag():
    with pytest.raises(ConfigError, match="--host"):
        bind_tcp("no.such.host.invalid", 0)


def test_a_stale_socket_is_replaced_and_one_in_use_is_not(tmp_path):
    path = str(tmp_path / "s")
    bind_unix(path, mode=0o600).close()
    with bind_unix(path, mode=0o600), pytest.raises(ConfigError, match="another server"):
        bind_unix(path, mode=0o600)


def test_a_file_that_is_no_socket_is_left_alone(tmp_path):
    path = tmp_path / "precious"
    path.write_text("data")
    with pytest.raises(ConfigError):
        bind_unix(str(path), mode=0o600)
    assert path.read_text() == "data"


def test_a_certificate_that_cannot_be_read_is_said_with_the_flag(tmp_path):
    with pytest.raises(ConfigError, match="--ssl-certfile"):
        load_tls(str(tmp_path / "none"), str(tmp_path / "none"))


def test_the_admin_port_is_on_loopback():
    config = load_config({"port": 0, "admin_port": 0, "admin_api_key": "k", "host": "0.0.0.0"}, env={})
    sockets = bind(config)
    with sockets.public, sockets.admin:
        assert sockets.admin.getsockname()[0] == "127.0.0.1"

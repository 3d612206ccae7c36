"""The list of models through the official client of Anthropic, on a server with two names."""

import pytest
from fakes.official_clients import anthropic_client

anthropic = pytest.importorskip("anthropic", reason="the client is a development extra")


def test_the_client_lists_models_page_by_page(server):
    with anthropic_client(server) as client:
        first = client.models.list(limit=1)
        assert ([item.id for item in first], first.has_more, first.last_id) == (["tiny", "other"], True, "tiny")
        assert [item.id for item in client.models.list()] == ["tiny", "other"]
        one = client.models.retrieve("other")
        assert (one.type, one.id, one.display_name, one.lifecycle) == ("model", "other", "other", "active")
        assert one.max_input_tokens == 256
        assert one.created_at.tzinfo is not None
        with pytest.raises(anthropic.NotFoundError):
            client.models.retrieve("none/such")
        with pytest.raises(anthropic.BadRequestError, match="limit='0'"):
            client.models.list(limit=0)


def test_models_are_openais_unless_the_header_says_otherwise(server):
    assert server.get("/v1/models").json["object"] == "list"
    assert "object" not in server.get("/v1/models", {"anthropic-version": "2023-06-01"}).json

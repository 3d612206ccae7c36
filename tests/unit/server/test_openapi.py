import json

from octavo.config.server_options import ServerConfig
from octavo.server.app import App
from octavo.server.openapi import render_docs, render_openapi


def test_every_route_is_described_with_its_methods():
    described = json.loads(render_openapi("/api"))
    assert described["servers"] == [{"url": "/api"}]
    table = {path: set(methods.lower().split(", ")) for path, methods in App(ServerConfig(), None).routes}
    assert {path: set(operations) for path, operations in described["paths"].items()} == table
    assert all(f"<code>{path}</code>" in render_docs("").decode() for path in table)


def test_every_reference_leads_to_a_schema():
    text = render_openapi("").decode()
    schemas = json.loads(text)["components"]["schemas"]
    names = {part.split('"')[0] for part in text.split("#/components/schemas/")[1:]}
    assert {"ChatCompletionRequest", "ResponsesRequest", "FunctionCallItem", "ErrorInfo"} <= names <= set(schemas)

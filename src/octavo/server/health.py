"""Probes: /health and /ping ask the engine, /livez this process, /readyz whether requests are served now."""

from __future__ import annotations

from octavo import __version__
from octavo.base.errors import EngineDeadError
from octavo.server.errors import unavailable
from octavo.server.exchange import Exchange
from octavo.server.service import Service

HEALTH_TIMEOUT_S = 1.0


async def health(exchange: Exchange, service: Service) -> None:
    """200 with an empty body after a live round trip to the engine. Raises ApiError 503."""
    if service.admission.is_draining:
        raise unavailable("shutting_down", "The server is shutting down.")
    try:
        await service.engine.check_health(HEALTH_TIMEOUT_S)
    except EngineDeadError:
        raise unavailable("unavailable", f"The engine is {service.engine.state.value} or does not answer.") from None
    await exchange.reply(b"")


async def ready(exchange: Exchange, service: Service) -> None:
    """200 while requests are served at once; from the first sign of trouble 503. Costs no round trip."""
    if service.admission.is_draining:
        raise unavailable("shutting_down", "The server is shutting down.")
    if not service.engine.state.is_ready:
        raise unavailable("unavailable", f"The engine is {service.engine.state.value}.")
    await exchange.reply(b"")


async def live(exchange: Exchange) -> None:
    """200: this process answers."""
    await exchange.reply(b"")


async def version(exchange: Exchange) -> None:
    """The version of Octavo."""
    await exchange.reply_json({"version": __version__})


async def load(exchange: Exchange, service: Service) -> None:
    """Requests for text that are being answered, by all front ends."""
    await exchange.reply_json({"server_load": service.load.num_active})

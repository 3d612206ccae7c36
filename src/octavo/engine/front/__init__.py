"""The asyncio front end: AsyncLLM, its streams, and their life over the engine's deaths."""

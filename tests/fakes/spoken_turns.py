"""An engine that says given texts, cut anywhere, and the turns that read them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from octavo.outputs import CompletionOutput, Logprob, RequestOutput
from octavo.parsers.interface import ToolSpec
from octavo.parsers.registry import make_parser
from octavo.server.api.chat_types import ChatCompletionRequest
from octavo.server.api.logprobs import TokenNames
from octavo.server.api.usage import UsageMeter
from octavo.server.turn import Turn
from octavo.server.turn_reasoning import ReasoningCounter

TEXT = (
    '<think>\nhm</think>\n\nWell.<tool_call>\n{"name": "f", "arguments": {"x": "a\\"b"}}\n</tool_call>\n'
    '<tool_call>\n{"name": "g", "arguments": {}}\n</tool_call>'
)


class FakeEngine:
    """Says texts[i] as sequence i, `size` tokens (characters) an output."""

    state = SimpleNamespace(takes_requests=True, value="healthy")

    def __init__(self, texts, size, reason="stop"):
        self.texts, self.size, self.reason = texts, size, reason
        self.stop_reason = None
        self.error = self.error_kind = None
        self.num_left = 0

    def open(self, request):
        return self._outputs()

    def leave(self, stream):
        self.num_left += 1

    async def _outputs(self):
        longest = max(map(len, self.texts))
        for start in range(0, max(longest, 1), self.size):
            parts = []
            for index, text in enumerate(self.texts):
                piece, is_last = text[start : start + self.size], start + self.size >= len(text)
                if piece or not text:
                    ids = list(map(ord, piece))
                    parts.append(
                        CompletionOutput(
                            index=index,
                            text=piece,
                            token_ids=ids,
                            logprobs=[{i: Logprob(-1.0, 1)} for i in ids],
                            finish_reason=self.reason if is_last else None,
                            stop_reason=self.stop_reason if is_last else None,
                            error=self.error if is_last else None,
                            error_kind=self.error_kind if is_last else None,
                        )
                    )
            yield RequestOutput(
                request_id="r",
                prompt="p",
                prompt_token_ids=[1],
                outputs=parts,
                finished=start + self.size >= longest,
                num_cached_tokens=0,
            )


def make_turn(n=1, *, choice="auto", parallel=True, is_plain=False, **fields: Any):
    """is_plain: all that is said is text for the reader."""

    def parser():
        return make_parser(tool="hermes", reasoning="qwen3", tools=[ToolSpec("f"), ToolSpec("g")], parallel=parallel)

    def counter():
        return ReasoningCounter(lambda i: chr(i).encode(), "<think>", "</think>", is_inside=False)

    return Turn(
        request=ChatCompletionRequest(messages=[], **fields),
        request_id="r",
        model="m",
        prepared=SimpleNamespace(sequences=[None] * n, sampling=SimpleNamespace(temperature=1.0, top_p=0.9)),
        role="assistant",
        echoed="",
        names=TokenNames(None, as_ids=False),
        num_top=0,
        tool_choice=choice,
        make_parser=None if is_plain else parser,
        make_counter=None if is_plain else counter,
        meter=UsageMeter(reports_cached=True),
    )

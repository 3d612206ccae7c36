from __future__ import annotations

import pytest

from octavo.base.errors import ValidationError
from octavo.engine.progress import GenerationProgress
from octavo.outputs import CompletionOutput, RequestOutput

OUTPUT = RequestOutput(
    request_id="0",
    prompt=None,
    prompt_token_ids=[1, 2, 3],
    outputs=[CompletionOutput(index=0, text="", token_ids=[4, 5])],
)


class NotingBar:
    def __init__(self, total, desc):
        self.total, self.desc = total, desc
        self.num_done, self.postfix, self.is_closed = 0, "", False

    def update(self, n=1):
        self.num_done += n

    def set_postfix_str(self, s):
        self.postfix = s

    def close(self):
        self.is_closed = True


def test_a_callers_bar_is_fed_and_closed_also_after_an_error():
    bars = []

    def factory(**details):
        bars.append(NotingBar(**details))
        return bars[0]

    def use_and_fail():
        with GenerationProgress.start(factory, total=2) as progress:
            progress.add(OUTPUT)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        use_and_fail()
    assert (bars[0].total, bars[0].num_done, bars[0].is_closed) == (2, 1, True)
    assert "output" in bars[0].postfix


def test_the_own_bar_writes_to_stderr_only(capsys):
    with GenerationProgress.start(True, total=1) as progress:
        progress.add(OUTPUT)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "1/1" in captured.err
    assert "tokens/s" in captured.err


@pytest.mark.parametrize(("use_tqdm", "total"), [(False, 5), (True, 0)])
def test_no_bar_shows_nothing(capsys, use_tqdm, total):
    with GenerationProgress.start(use_tqdm, total=total) as progress:
        progress.add(OUTPUT)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("choice", ["yes", 1, None])
def test_what_is_neither_a_choice_nor_a_factory_is_refused(choice):
    with pytest.raises(ValidationError, match="use_tqdm="):
        GenerationProgress.start(choice, total=1)

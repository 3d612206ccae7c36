"""Names of vLLM that this release does not do, and names that do not exist."""

import pytest

from octavo.base.errors import ValidationError
from octavo.proto.sampling import SamplingParams
from octavo.proto.sampling_names import REFUSED


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_is_not_done_is_refused_by_name(name):
    with pytest.raises(ValidationError, match=name) as caught:
        SamplingParams(**{name: {"some": "thing"}})
    assert caught.value.parameter == name


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_asking_for_nothing_is_let_through(name):
    for value in REFUSED[name][0]:
        assert SamplingParams(**{name: value}) == SamplingParams()


def test_true_is_not_taken_for_one():
    with pytest.raises(ValidationError, match="best_of"):
        SamplingParams(best_of=True)


def test_an_unknown_name_is_told_the_near_one():
    with pytest.raises(ValidationError, match="did you mean temperature") as caught:
        SamplingParams(temprature=0.5)
    assert caught.value.parameter == "temprature"


def test_an_unknown_name_with_no_near_one_is_refused():
    with pytest.raises(ValidationError, match=r"no such sampling parameter$"):
        SamplingParams(zzzzzz=1)

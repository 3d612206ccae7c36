"""Back ends by name."""

from __future__ import annotations

import pytest

from octavo.base.errors import ConfigError
from octavo.kernels.dispatch import make_ops


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_reference_back_end_carries_its_name_and_dtype(dtype: str) -> None:
    ops = make_ops("reference", dtype)  # type: ignore[arg-type]
    assert (ops.name, ops.dtype) == ("reference", dtype)


def test_an_unknown_back_end_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match="abacus"):
        make_ops("abacus", "float32")  # type: ignore[arg-type]

"""The tiny models as folders on disk: the loaders read the spec and the weights that were written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from fakes.hf_folder import write_hf_folder
from fakes.tiny_models import TINY_SPECS
from fakes.tiny_weights import tiny_tensors

from octavo.loading import open_checkpoint


@pytest.mark.parametrize("name", TINY_SPECS)
def test_a_folder_gives_back_spec_and_weights(name: str, tmp_path: Path) -> None:
    spec = TINY_SPECS[name]
    checkpoint = open_checkpoint(write_hf_folder(tmp_path / name, spec))
    try:
        assert checkpoint.spec == spec
        tensors = tiny_tensors(spec)
        assert sorted(checkpoint.tensor_names) == sorted(tensors)
        for tensor_name, values in tensors.items():
            np.testing.assert_array_equal(checkpoint.tensor(tensor_name).read_f32(), values)
    finally:
        checkpoint.close()

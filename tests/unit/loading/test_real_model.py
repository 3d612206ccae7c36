"""The default model's file: fast to open, light while it is read."""

import subprocess
import sys
import time

import pytest

from octavo.loading import open_checkpoint

pytestmark = pytest.mark.needs_smollm2

MAX_OPEN_S = 0.5
MAX_ANON_SHARE = 1.2

READ_ALL = """
import sys
from pathlib import Path
import numpy as np
from octavo.loading import open_checkpoint

def status(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith(name)).split()[1])

checkpoint = open_checkpoint(Path(sys.argv[1]))
before, peak, peak_file, kept = status("RssAnon"), 0, 0, []
for name in checkpoint.tensor_names:
    tensor = checkpoint.tensor(name)
    packed = np.empty(tensor.shape, np.float32)
    for start in range(0, tensor.shape[0], 1024):
        stop = min(start + 1024, tensor.shape[0])
        packed[start:stop] = tensor.read_f32(start, stop)
    tensor.drop()
    kept.append(packed)
    peak = max(peak, status("RssAnon") - before)
    peak_file = max(peak_file, status("RssFile"))
print(peak, peak_file, sum(array.nbytes for array in kept))
"""


def test_it_opens_with_its_tokenizer_in_half_a_second(smollm2_path):
    times = []
    for _ in range(3):
        start = time.perf_counter()
        with open_checkpoint(smollm2_path) as checkpoint:
            checkpoint.load_tokenizer()
        times.append(time.perf_counter() - start)
    assert min(times) < MAX_OPEN_S


def test_reading_it_costs_little_more_memory_than_the_result(smollm2_path):
    done = subprocess.run(
        [sys.executable, "-c", READ_ALL, str(smollm2_path)], capture_output=True, text=True, check=True
    )
    peak, peak_file, final = (int(field) for field in done.stdout.split())
    assert final == 4 * 134_515_008
    assert peak < MAX_ANON_SHARE * final
    # Pages of tensors that were read are given back; those of the file's head and of libraries stay.
    assert peak_file < 100 * 2**20


def test_bytes_that_the_vocabulary_lacks_are_dropped(smollm2_path):
    with open_checkpoint(smollm2_path) as checkpoint:
        tokenizer = checkpoint.load_tokenizer()
    missing = "\x04\x06\x13\x14\x16\x1d"
    assert tokenizer.encode(f"a{missing}b") == tokenizer.encode("a") + tokenizer.encode("b")
    ids = tokenizer.encode("héllo wörld 🙂 123\n\tend")
    assert tokenizer.decode(ids) == "héllo wörld 🙂 123\n\tend"
    assert b"".join(tokenizer.id_to_bytes(idx) for idx in ids) == "héllo wörld 🙂 123\n\tend".encode()


def test_what_the_file_says_of_the_model(smollm2_path):
    with open_checkpoint(smollm2_path) as checkpoint:
        spec = checkpoint.spec
        assert (spec.num_layers, spec.hidden_size, spec.num_heads, spec.num_kv_heads) == (30, 576, 9, 3)
        assert (spec.rope.theta, spec.norm_eps, spec.tie_word_embeddings) == (1e5, 1e-5, True)
        assert (spec.bos_token_id, spec.eos_token_ids[0]) == (1, 2)
        assert checkpoint.tensor("model.embed_tokens.weight").storage == "q8_0"
        assert checkpoint.num_weight_bytes("float32") == 4 * 134_515_008

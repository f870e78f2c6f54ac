# SPDX-License-Identifier: BSD-3-Clause
"""The layers of the demo's model, each gathered from one shard on every rank."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from mpimcast.cli.demo import model

TENSORS = {
    "h.0.attn.weight": np.arange(10, dtype=np.float16),
    "h.0.attn.bias": np.arange(7, dtype=np.int8),
    "h.1.attn.weight": np.zeros((3, 1)),
    "h.10.attn.weight": np.ones(()),
    "wte.weight": np.arange(6).reshape(2, 3),
    "empty": np.zeros(0),
}


def test_gpt2_small() -> None:
    """All layers together have GPT-2 small's number of parameters, four bytes each."""
    layers = model.gpt2_small(1)
    assert sum(layer.nbytes for layer in layers) == 4 * 124_439_808
    assert len(layers) == 15


@pytest.mark.parametrize("nranks", [1, 3, 4, 7])
def test_shards(nranks: int) -> None:
    """On any number of ranks, equal shards form the layer, padded with zeros."""
    layer = model.gpt2_small(1)[1]
    shards = [model.shard_of(layer, rank, nranks) for rank in range(nranks)]
    assert len({shard.size for shard in shards}) == 1
    whole = np.concatenate(shards)
    assert np.array_equal(whole[: layer.nbytes], layer.read(0, layer.nbytes))
    assert not whole[layer.nbytes :].any()
    weights = whole[: layer.nbytes].view(np.float32)
    assert ((weights >= 0) & (weights < 1)).all()


@pytest.mark.parametrize("kind", ["safetensors", "npz"])
def test_file(kind: str, tmp_path: Path) -> None:
    """A file's tensors are grouped into layers that have exactly their bytes."""
    path = tmp_path / f"model.{kind}"
    if kind == "npz":
        np.savez(path, **TENSORS)
    else:
        save_file(TENSORS, path)
    layers = {layer.name: layer for layer in model.read_file(path)}
    assert set(layers) == {"h.0", "h.1", "h.10", "wte.weight", "empty"}
    # Ten items of two bytes and seven of one byte, in either order.
    content = layers["h.0"].read(0, 27).tobytes()
    parts = [TENSORS["h.0.attn.weight"].tobytes(), TENSORS["h.0.attn.bias"].tobytes()]
    assert content in (b"".join(parts), b"".join(reversed(parts)))
    assert layers["h.0"].read(5, 18).tobytes() == content[5:23]
    assert layers["wte.weight"].read(0, 48).tobytes() == bytes(TENSORS["wte.weight"])
    assert layers["empty"].nbytes == 0


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.bin", b"x"),
        ("a.npz", b"x"),
        ("a.npz", b""),
        ("a.safetensors", b""),
        ("a.safetensors", b"\xff" * 9),
        ("a.safetensors", b"\2\0\0\0\0\0\0\0{}"),
        ("a.safetensors", b"\2\0\0\0\0\0\0\0[]"),
        ("a.safetensors", b"\7\0\0\0\0\0\0\0{'a':1}"),
        ("a.safetensors", b'\x1c\0\0\0\0\0\0\0{"a":{"data_offsets":[0,4]}}ab'),
        ("a.safetensors", b'\x1c\0\0\0\0\0\0\0{"a":{"data_offsets":[2,1]}}ab'),
    ],
)
def test_bad_file(name: str, content: bytes, tmp_path: Path) -> None:
    """A file that is not a model, or is damaged, is refused, and the error names it.

    An npz is a zip file. A safetensors file has the length of its header in eight
    bytes, then the header in JSON, then the data that the header's offsets refer to.
    """
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ValueError, match=name):
        model.read_file(path)

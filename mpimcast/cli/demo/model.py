# SPDX-License-Identifier: BSD-3-Clause
"""The layers that the demo unshards: GPT-2 small's, or a user's file's."""

from __future__ import annotations

import json
import re
import struct
import zipfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

_HEADER_BYTES_MAX = 100 << 20


@dataclass(frozen=True)
class Layer:
    """A group of parameters that is unsharded at once.

    Attributes
    ----------
    nbytes : int
        Bytes of the layer's parameters, without padding.
    read : callable
        ``read(begin, nbytes)`` returns `nbytes` of the layer's bytes from `begin` on.
    """

    name: str
    nbytes: int
    read: Callable[[int, int], NDArray[np.uint8]]


def shard_of(layer: Layer, rank: int, nranks: int) -> NDArray[np.uint8]:
    """Return a rank's shard. As in FSDP all have one size; zeros pad the last ones."""
    shard_bytes = -(-layer.nbytes // nranks)
    shard = np.zeros(shard_bytes, np.uint8)
    begin = min(rank * shard_bytes, layer.nbytes)
    have = min(shard_bytes, layer.nbytes - begin)
    shard[:have] = layer.read(begin, have)
    return shard


def gpt2_small(seed: int) -> list[Layer]:
    """Return the layers of GPT-2 small in float32, with seeded random numbers."""
    width, inner = 768, 3072
    norm = 2 * width
    block = (
        (norm + (width + 1) * 3 * width + (width + 1) * width)  # attention
        + (norm + (width + 1) * inner + (inner + 1) * width)  # MLP
    )
    sizes = {"wte": 50257 * width, "wpe": 1024 * width}
    sizes |= {f"h.{index}": block for index in range(12)}
    sizes["ln_f"] = norm
    return [
        Layer(name, 4 * size, _RandomWeights((seed, index)))
        for index, (name, size) in enumerate(sizes.items())
    ]


@dataclass(frozen=True)
class _RandomWeights:
    """Random float32 in [0, 1), as bytes that are the same each time they are read."""

    seed: tuple[int, int]

    def __call__(self, begin: int, nbytes: int) -> NDArray[np.uint8]:
        first, last = begin // 4, -(-(begin + nbytes) // 4)
        # PCG64 makes two float32 of each 64-bit number.
        generator = np.random.PCG64(self.seed).advance(first // 2)
        skipped = first % 2
        weights = np.random.Generator(generator).random(
            last - first + skipped, dtype=np.float32
        )[skipped:]
        return weights.view(np.uint8)[begin - 4 * first :][:nbytes]


def read_file(path: Path) -> list[Layer]:
    """Return the layers of a .safetensors or .npz file; raise ValueError if bad.

    A layer consists of all tensors whose names are equal up to and including their
    first number, or of one tensor whose name has no number.
    """
    if path.suffix == ".safetensors":
        tensors = _read_safetensors(path)
    elif path.suffix == ".npz":
        tensors = _read_npz(path)
    else:
        raise ValueError(f"{path}: neither .safetensors nor .npz")
    groups: dict[str, list[_Tensor]] = {}
    for name, tensor in tensors.items():
        match = re.match(r"(.*?\.)?\d+(?=\.)", name)
        groups.setdefault(match[0] if match else name, []).append(tensor)
    layers = [
        Layer(name, sum(each.nbytes for each in group), _Concatenation(group))
        for name, group in groups.items()
    ]
    if not any(layer.nbytes for layer in layers):
        raise ValueError(f"{path}: holds no data")
    return layers


@dataclass(frozen=True)
class _Tensor:
    nbytes: int
    load: Callable[[], NDArray[np.uint8]]


@dataclass(frozen=True)
class _Concatenation:
    """Tensors in sequence; reading loads only those that it touches."""

    tensors: Sequence[_Tensor]

    def __call__(self, begin: int, nbytes: int) -> NDArray[np.uint8]:
        parts = []
        for tensor in self.tensors:
            first, last = max(begin, 0), min(begin + nbytes, tensor.nbytes)
            if first < last:
                parts.append(tensor.load()[first:last])
            begin -= tensor.nbytes
        return np.concatenate(parts) if parts else np.empty(0, np.uint8)


def _read_safetensors(path: Path) -> dict[str, _Tensor]:
    """Read a file: the header's length in 8 bytes, its JSON, and the described data.

    The format is read by hand since a rank wants only its shard's bytes, of any type:
    the safetensors library copies the whole file, or has no bfloat16 for NumPy.
    """
    try:
        content = np.memmap(path, np.uint8, "r")
        (header_bytes,) = struct.unpack("<Q", content[:8].tobytes())
        header_bytes = min(header_bytes, _HEADER_BYTES_MAX)
        header = json.loads(content[8 : 8 + header_bytes].tobytes())
        data = content[8 + header_bytes :]
        return {
            name: _piece(data, *entry["data_offsets"])
            for name, entry in header.items()
            if name != "__metadata__"
        }
    except (ValueError, TypeError, KeyError, AttributeError, struct.error) as error:
        raise ValueError(f"{path}: not a safetensors file: {error}") from error


def _piece(data: NDArray[np.uint8], begin: int, end: int) -> _Tensor:
    if not 0 <= begin <= end <= data.size:
        raise ValueError(f"a tensor from byte {begin} to {end} of {data.size}")
    return _Tensor(end - begin, lambda: data[begin:end])


def _read_npz(path: Path) -> dict[str, _Tensor]:
    try:
        arrays: dict[str, Any] = dict(np.load(path))
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path}: not a file of arrays: {error}") from error
    return {name: _array(array) for name, array in arrays.items()}


def _array(array: NDArray[Any]) -> _Tensor:
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return _Tensor(flat.size, lambda: flat)

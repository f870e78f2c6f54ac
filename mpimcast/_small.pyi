# SPDX-License-Identifier: BSD-3-Clause
# What small calls need in C; see ffi/python.

# ---- limits.c ----------------------------------------------------------------

# The size in bytes of each predefined datatype, by the id of its object.
TYPE_SIZES: dict[int, int]

# The sizes below which the MPI library carries a collective; 0 at first. Each method
# for a form of message returns whether that is certainly below them.
class Limits:
    # A message of one block, as of a Bcast.
    def small_block(self, message: object, /) -> bool: ...
    # Equal blocks, one of each rank, as of an Allgather.
    def small_blocks(self, message: object, /) -> bool: ...
    # Blocks that may have different counts, as of an Allgatherv.
    def small_vector(self, message: object, /) -> bool: ...
    # Sets the limits of a whole result and of a block.
    def set(self, result_bytes: int, block_bytes: int, /) -> None: ...

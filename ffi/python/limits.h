/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Is a message so small that the MPI library carries it? Each call of a collective asks
 * this first, so the answer must cost next to nothing.
 *
 * The ranks must all take the same way. So a message counts as small only if its own
 * counts and types prove that. The size of a buffer proves it only where the message
 * is the whole buffer, since elsewhere ranks may have buffers of different sizes.
 * Whoever is told no parses the message, and comes to the same decision.
 *
 * Messages into memory that ranks share are never the MPI library's, and it may not be
 * able to read those in the memory of a device. Python knows them.
 */
#ifndef MMC_PYTHON_LIMITS_H
#define MMC_PYTHON_LIMITS_H

#include <Python.h>

#include <stdbool.h>

enum mmc_py_form {
	MMC_PY_BLOCK,  /* one block, whose count is a number */
	MMC_PY_BLOCKS, /* equal blocks, of which each has that count */
	MMC_PY_VECTOR, /* blocks that may have counts of their own */
};

/*
 * Returns 1, and counts the message, if it is the MPI library's by the size alone; 0 if
 * not, or -1 with an exception. `limits` is an object of the class Limits.
 */
int mmc_py_is_below(PyObject *limits, PyObject *message, enum mmc_py_form form);

/* Whether this process may have memory that ranks share. */
bool mmc_py_may_share(void);

#endif

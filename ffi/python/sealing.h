/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Python objects that are small: pickling, unpickling, and their headers. See
 * mpimcast/_mpi/objects.py for all other objects.
 *
 * A header begins with two numbers of eight bytes, the most significant byte first: the
 * length of the pickle, and the number of buffers beside it, or a number that says that
 * the header is short: it contains the pickle.
 */
#ifndef MMC_PYTHON_SEALING_H
#define MMC_PYTHON_SEALING_H

#include <Python.h>

#include <stdbool.h>

/* Where the pickle begins in a header. */
#define BEGIN 16

/*
 * Pickles an object with the user's settings. Returns the pickle, which is bytes, and a
 * list or tuple of the buffers beside it, or NULL with an exception.
 */
PyObject *mmc_py_dumps(PyObject *object);

/* Whether such a pair has no buffers, and is below `small_bytes`. */
bool mmc_py_is_small(PyObject *pair, long long small_bytes);

/* Whether a pickle fits in a header. */
bool mmc_py_fits(PyObject *pair, Py_ssize_t header_bytes);

/* Writes a short header. */
void mmc_py_write(char *header, Py_ssize_t header_bytes, PyObject *pair);

/* Writes the header of a pickle that follows it, and has no buffers. */
void mmc_py_announce(char *header, Py_ssize_t header_bytes, PyObject *pair);

/* Returns the bytes of such a pickle, or -1 if the header announces something else. */
long long mmc_py_announced(const char *header);

bool mmc_py_is_short(const char *header);

/* Returns the pickle in a short header, or NULL with an exception. */
PyObject *mmc_py_read(const char *header, Py_ssize_t header_bytes);

/* Unpickles an object from a buffer. As in mpi4py, no bytes at all stand for None. */
PyObject *mmc_py_loads(PyObject *pickle);

#endif

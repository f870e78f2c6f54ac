/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Plain buffers: contiguous memory of numbers in the machine's own byte order, such as
 * most arrays of NumPy. To take one means the same to mpi4py as its bytes.
 */
#ifndef MMC_PYTHON_PLAIN_H
#define MMC_PYTHON_PLAIN_H

#include <Python.h>

#include <stdbool.h>

/* What is in the limited API since Python 3.11, and has been in Python since 3.3. */
#if defined(Py_LIMITED_API) && Py_LIMITED_API + 0 < 0x030b0000
typedef struct {
	void *buf;
	PyObject *obj;
	Py_ssize_t len;
	Py_ssize_t itemsize;
	int readonly;
	int ndim;
	char *format;
	Py_ssize_t *shape;
	Py_ssize_t *strides;
	Py_ssize_t *suboffsets;
	void *internal;
} Py_buffer;

PyAPI_FUNC(int)
	PyObject_GetBuffer(PyObject *object, Py_buffer *view, int flags);
PyAPI_FUNC(void) PyBuffer_Release(Py_buffer *view);
PyAPI_FUNC(int) PyObject_CheckBuffer(PyObject *object);

#define PyBUF_SIMPLE 0
#define PyBUF_WRITABLE 0x0001
#define PyBUF_FORMAT 0x0004
#define PyBUF_ND 0x0008
#endif

/* NumPy's class of arrays, and its types of numbers that mpi4py knows. */
struct mmc_py_numpy {
	PyObject *array_type;
	PyObject *plain_types; /* a tuple, those in most use first */
};

/*
 * Takes the memory of a plain buffer, until PyBuffer_Release(). Returns false, and sets
 * no exception, for anything else, such as read-only memory where it has to be
 * `writable`.
 */
bool mmc_py_take_plain(const struct mmc_py_numpy *numpy, PyObject *object,
		       bool writable, Py_buffer *view);

/*
 * Names the class whose objects, and views of them, may show memory of a device as if it
 * were the host's: mpi4py's buffer. It is named before any buffer is looked at.
 */
void mmc_py_doubt(PyObject *type);

/*
 * Returns whether the memory of an object is certainly the host's. Objects without the
 * buffer protocol may have memory of a device.
 */
bool mmc_py_is_of_host(PyObject *object);

/* Finds the class of Python's own arrays; on error it returns -1 with an exception. */
int mmc_py_prepare_plain(void);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A bell for threads in which Python must not run, such as a driver's: one that waited
 * for Python's lock could wait for a thread that has the lock and waits for the driver.
 */
#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "python/small.h"

static _Atomic uint32_t nrings;

/* Sets the 32-bit number at `ended`, and wakes whoever listens. */
static void ring(void *ended)
{
	atomic_store((_Atomic uint32_t *)ended, 1);
	atomic_fetch_add(&nrings, 1);
	syscall(SYS_futex, &nrings, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

PyObject *mmc_py_bell(PyObject *module, PyObject *none)
{
	(void)module;
	(void)none;
	return PyLong_FromUnsignedLongLong((uintptr_t)ring);
}

PyObject *mmc_py_listen(PyObject *module, PyObject *nheard)
{
	unsigned long seen = PyLong_AsUnsignedLong(nheard);
	PyThreadState *state;

	(void)module;
	if (PyErr_Occurred() != NULL)
		return NULL;
	state = PyEval_SaveThread();
	while (atomic_load(&nrings) == (uint32_t)seen)
		syscall(SYS_futex, &nrings, FUTEX_WAIT_PRIVATE, (uint32_t)seen,
			NULL, NULL, 0);
	PyEval_RestoreThread(state);
	return PyLong_FromUnsignedLong(atomic_load(&nrings));
}

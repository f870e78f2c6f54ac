/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts libraries, so that Python searches for drivers only if new ones are loaded. */
#include <link.h>

#include "python/small.h"

/* Each entry tells the same number, so that the first will do. */
static int read_first(struct dl_phdr_info *info, size_t nbytes, void *nloaded)
{
	(void)nbytes;
	*(unsigned long long *)nloaded = info->dlpi_adds;
	return 1;
}

PyObject *mmc_py_nloaded(PyObject *module, PyObject *none)
{
	unsigned long long nloaded = 0;

	(void)module;
	(void)none;
	dl_iterate_phdr(read_first, &nloaded);
	return PyLong_FromUnsignedLongLong(nloaded);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs an operation of the C library without Python's lock; an operation that takes long,
 * or fails, is Python's to finish.
 */
#ifndef MMC_PYTHON_DRIVE_H
#define MMC_PYTHON_DRIVE_H

#include "python/express.h"

/*
 * Returns 1 once an operation has ended, 0 if none was started, or -1: an exception.
 * `name` and the last two of `arguments`, which is NULL if there are none, tell Python
 * what it has to finish.
 */
int mmc_py_drive(struct mmc_py_express *express, void *stream,
		 const struct mmc_operation *operation, const char *name,
		 PyObject *const *arguments);

#endif

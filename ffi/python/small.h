/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The module mpimcast._small: what small calls need, in C, since they take less than a
 * few microseconds in all.
 */
#ifndef MMC_PYTHON_SMALL_H
#define MMC_PYTHON_SMALL_H

#include <Python.h>

/* Adds `value`, whose reference it takes over, to the module; NULL is an error. */
int mmc_py_add(PyObject *module, const char *name, PyObject *value);

/* Returns how many libraries this process has loaded so far. */
PyObject *mmc_py_nloaded(PyObject *module, PyObject *none);

/*
 * Returns the address of a function for a driver to call in a thread of its own, with the
 * address of a 32-bit number: it sets the number to 1, and wakes mmc_py_listen().
 */
PyObject *mmc_py_bell(PyObject *module, PyObject *none);

/* Sleeps until the bell has not been rung `nheard` times; returns how often it was. */
PyObject *mmc_py_listen(PyObject *module, PyObject *nheard);

/* Each adds its part to the module; on error they return -1 and set an exception. */
int mmc_py_add_limits(PyObject *module);
int mmc_py_add_sealing(PyObject *module);
int mmc_py_add_bcast(PyObject *module);
int mmc_py_add_express(PyObject *module);

#endif

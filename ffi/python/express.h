/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The express way of one communicator: a blocking collective of plain buffers crosses
 * from Python to C once, if it is known who carries its size, or if that is being
 * measured. All other calls, and whatever goes wrong, are left to Python.
 */
#ifndef MMC_PYTHON_EXPRESS_H
#define MMC_PYTHON_EXPRESS_H

#include <Python.h>
#include <mpimcast/request.h>

#include <stdatomic.h>
#include <stdbool.h>

#include "python/keys.h"
#include "python/plain.h"

/* Sizes of one class have equally many bits. */
#define MMC_PY_CLASSES 65

enum mmc_py_collective {
	MMC_PY_ALLGATHER,
	MMC_PY_BCAST,
	MMC_PY_COLLECTIVES,
};

enum mmc_py_carrier {
	MMC_PY_UNKNOWN,
	MMC_PY_OURS,
	MMC_PY_LIBRARY,
	MMC_PY_TRIAL, /* either of the two, as Python says in each call */
	MMC_PY_CARRIERS,
};

/* What is known of the calls of one class of sizes. */
struct mmc_py_class {
	_Atomic uint32_t carrier;   /* enum mmc_py_carrier */
	_Atomic uint64_t ncalls;    /* so far, on the express way or another */
	_Atomic uint64_t next_look; /* the call that is Python's; 0: none is */
	/* The time of the latest trial until all ranks know it, otherwise 0. */
	_Atomic uint64_t untold_ns;
};

/* Blocking calls that were carried, and the time in them. */
struct mmc_py_tally {
	_Atomic uint64_t ncalls;
	_Atomic uint64_t spent_ns;
};

/* What trials need, see Express.measure in _small.pyi. */
struct mmc_py_trials {
	PyObject *times_ns; /* an array of one number for each rank */
	Py_buffer view;	    /* of the array */
	PyObject *begin;
	PyObject *run;
	struct mmc_py_tally tallies[MMC_PY_CARRIERS];
};

/*
 * The C library's functions, which lie in another module. A stream is a struct
 * mmc_stream or mmc_node_stream, a request one of its operations.
 */
struct mmc_py_calls {
	int (*start)(void *stream, const struct mmc_operation *operation,
		     uint64_t slice_ns, void **request);
	void (*cancel)(void *request);
	void (*free)(void *request);
	uint32_t (*unicast_epoch)(void *between);
};

struct mmc_py_express {
	PyObject_HEAD
		/* An object of the class Limits; what is below is the library's. */
		PyObject *limits;
	PyObject *library[MMC_PY_COLLECTIVES]; /* the MPI library's functions */
	struct mmc_py_class classes[MMC_PY_COLLECTIVES][MMC_PY_CLASSES];
	struct mmc_py_tally tallies[MMC_PY_CARRIERS];

	/* NULL before there is a stream, and once the express way has ended. */
	void *_Atomic stream;
	/* What follows does not change once there has been a stream. */
	struct mmc_py_calls calls;
	void *between; /* a stream that may suspend multicast, or NULL */
	uint64_t slice_ns;
	uint64_t nranks;
	uint64_t rank;
	struct mmc_py_numpy numpy;
	struct mmc_py_keys keys;
	PyObject *in_place; /* stands for MPI_IN_PLACE, as None does */
	/*
	 * Called with the address of the place of a request that has not ended within a
	 * slice, or has failed, with the collective's name and its arguments. It waits
	 * for the request, and frees it.
	 */
	PyObject *finish;
	/* Called when multicast was suspended or resumed; returns whether it is. */
	PyObject *watch;
	_Atomic bool suspended; /* as `watch` has returned last */
	/* Empty if nothing is measured; likewise it does not change after that. */
	struct mmc_py_trials trials;
};

/*
 * Each carries a blocking collective, whose arguments are the communicator and those of
 * mpi4py's method. Returns True once it has ended, and False if it is Python's.
 */
PyObject *mmc_py_allgather(PyObject *self, PyObject *const *arguments,
			   Py_ssize_t count);
PyObject *mmc_py_bcast(PyObject *self, PyObject *const *arguments,
		       Py_ssize_t count);

/* Likewise, but mpimcast carries the collective whatever its size, and counts nothing. */
PyObject *mmc_py_run_allgather(PyObject *self, PyObject *const *arguments,
			       Py_ssize_t count);
PyObject *mmc_py_run_bcast(PyObject *self, PyObject *const *arguments,
			   Py_ssize_t count);
PyObject *mmc_py_run_node_barrier(PyObject *self, PyObject *none);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#include "python/express.h"

#include <mpimcast/node.h>

#include <time.h>

#include "python/drive.h"
#include "python/limits.h"

/* A call whose buffers are plain. */
struct call {
	PyObject *const *arguments; /* the communicator, then the method's */
	void *stream;
	enum mmc_py_collective collective;
	bool is_forced; /* mpimcast carries it, whatever its size */
	bool is_trial;
	uint64_t begin_ns;
	struct mmc_py_class *class; /* NULL if nothing is counted */
	struct mmc_operation operation;
	Py_buffer result;
	Py_buffer block; /* what this rank sends, unless that is in place */
	bool has_block;
};

static const char *const names[] = { "Allgather", "Bcast" };

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) +
	       (uint64_t)now.tv_nsec;
}

static void count(struct mmc_py_tally *tally, uint64_t spent_ns)
{
	atomic_fetch_add_explicit(&tally->ncalls, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&tally->spent_ns, spent_ns,
				  memory_order_relaxed);
}

/* ---- calls --------------------------------------------------------------- */

/* Has the MPI library carry a call; returns 1, or -1 with an exception. */
static int leave_to_library(struct mmc_py_express *express,
			    enum mmc_py_collective collective,
			    PyObject *const *arguments)
{
	PyObject *result = PyObject_CallFunctionObjArgs(
		express->library[collective], arguments[0], arguments[1],
		arguments[2], NULL);

	Py_XDECREF(result);
	return result == NULL ? -1 : 1;
}

static unsigned int nbits(uint64_t nbytes)
{
	return nbytes == 0 ? 0 : 64 - (unsigned int)__builtin_clzll(nbytes);
}

/* Returns who carries a call, or -1. */
static int choose(struct mmc_py_express *express, struct call *call)
{
	struct mmc_operation *operation = &call->operation;
	int found = operation->block_bytes == 0
			    ? 1
			    : mmc_py_find_key(&express->keys, call->result.buf,
					      &operation->shared);

	if (found <= 0)
		return found < 0 ? -1 : MMC_PY_UNKNOWN;
	if (call->is_forced || operation->shared != 0)
		return MMC_PY_OURS;
	call->class = &express->classes[call->collective]
				       [nbits(operation->block_bytes)];
	if (call->class->ncalls + 1 == call->class->next_look)
		return MMC_PY_UNKNOWN;
	return (int)atomic_load_explicit(&call->class->carrier,
					 memory_order_relaxed);
}

/* Takes what this rank sends in an Allgather; returns whether that is plain. */
static bool take_block(struct mmc_py_express *express, struct call *call)
{
	struct mmc_operation *operation = &call->operation;
	const uint8_t *own = (const uint8_t *)operation->recv +
			     express->rank * operation->block_bytes;
	PyObject *send = call->arguments[1];

	if (call->collective != MMC_PY_ALLGATHER || send == Py_None ||
	    send == express->in_place)
		return true;
	if (!mmc_py_take_plain(&express->numpy, send, false, &call->block))
		return false;
	call->has_block = true;
	/* In memory that ranks share, C has to know that a block may be written there. */
	if (operation->shared != 0 || call->block.buf != own)
		operation->send = call->block.buf;
	return (uint64_t)call->block.len == operation->block_bytes;
}

static void release(struct call *call)
{
	if (call->has_block)
		PyBuffer_Release(&call->block);
	call->has_block = false;
	PyBuffer_Release(&call->result); /* without effect, if done before */
}

/* ---- trials -------------------------------------------------------------- */

/*
 * Gives all ranks the time of the latest trial here, and sets the longest of all; no rank
 * returns before all have called. Returns as carry().
 */
static int tell_all(struct mmc_py_express *express, const struct call *call,
		    uint64_t *longest_ns)
{
	const struct mmc_py_trials *trials = &express->trials;
	uint64_t *times_ns = (uint64_t *)trials->view.buf;
	PyObject *const arguments[] = { call->arguments[0], Py_None,
					trials->times_ns };
	const struct mmc_operation operation = {
		.kind = MMC_ALLGATHER,
		.block_bytes = sizeof(*times_ns),
		.recv = times_ns,
	};
	int result;

	times_ns[express->rank] = call->class->untold_ns;
	result = mmc_py_drive(express, call->stream, &operation,
			      names[MMC_PY_ALLGATHER], arguments);
	if (result <= 0)
		return result;
	call->class->untold_ns = 0;
	*longest_ns = 0;
	for (uint64_t i = 0; i < express->nranks; i++)
		if (times_ns[i] > *longest_ns)
			*longest_ns = times_ns[i];
	return 1;
}

/* Begins a call that may be a trial; returns who carries it, or as carry(). */
static int begin_trial(struct mmc_py_express *express, struct call *call)
{
	uint64_t longest_ns;
	int result = tell_all(express, call, &longest_ns);
	PyObject *carrier;

	if (result <= 0)
		return result;
	carrier = PyObject_CallFunction(express->trials.begin, "IIK",
					(unsigned int)call->collective,
					nbits(call->operation.block_bytes),
					(unsigned long long)longest_ns);
	result = carrier == NULL ? -1 : (int)PyLong_AsLong(carrier);
	Py_XDECREF(carrier);
	call->is_trial = call->class->carrier == MMC_PY_TRIAL;
	call->begin_ns = now_ns();
	return result;
}

/* Lets Python run a call that C could not start, which must not begin a second time. */
static int run_by_python(struct mmc_py_express *express,
			 const struct call *call)
{
	PyObject *result = PyObject_CallFunction(express->trials.run, "IOO",
						 (unsigned int)call->collective,
						 call->arguments[1],
						 call->arguments[2]);

	Py_XDECREF(result);
	return result == NULL ? -1 : 1;
}

/* ---- carriers ------------------------------------------------------------ */

static void count_end(struct mmc_py_express *express, const struct call *call,
		      int carrier)
{
	uint64_t spent_ns = now_ns() - call->begin_ns;

	if (call->is_trial)
		call->class->untold_ns = spent_ns == 0 ? 1 : spent_ns;
	count(call->is_trial ? &express->trials.tallies[carrier]
			     : &express->tallies[carrier],
	      spent_ns);
}

/* Has a carrier run a call; returns as carry(). */
static int run_by(struct mmc_py_express *express, struct call *call,
		  int carrier)
{
	if (carrier == MMC_PY_OURS)
		return mmc_py_drive(express, call->stream, &call->operation,
				    names[call->collective], call->arguments);
	/* Not even its buffers are mpimcast's business any more. */
	release(call);
	return leave_to_library(express, call->collective, call->arguments);
}

/* Carries a call whose result has been taken; returns as carry(). */
static int carry_result(struct mmc_py_express *express, struct call *call)
{
	int carrier = choose(express, call), result;
	bool is_measured = carrier == MMC_PY_TRIAL;

	if (carrier > 0 && carrier != MMC_PY_LIBRARY &&
	    !take_block(express, call))
		return 0;
	if (is_measured)
		carrier = begin_trial(express, call);
	if (carrier <= 0)
		return carrier;
	if (!is_measured && call->class != NULL)
		atomic_fetch_add_explicit(&call->class->ncalls, 1,
					  memory_order_relaxed);
	result = run_by(express, call, carrier);
	if (is_measured && result == 0)
		result = run_by_python(express, call);
	if (result > 0 && !call->is_forced)
		count_end(express, call, carrier);
	return result;
}

/* Carries a call; returns 1 if it has ended, 0 if it is Python's, or -1: an exception. */
static int carry(struct mmc_py_express *express, struct call *call,
		 PyObject *buffer, bool writable)
{
	int result = 0;

	if (!mmc_py_take_plain(&express->numpy, buffer, writable,
			       &call->result))
		return 0;
	call->operation.recv = call->result.buf;
	call->operation.block_bytes = (uint64_t)call->result.len;
	if (call->collective == MMC_PY_ALLGATHER)
		call->operation.block_bytes /= express->nranks;
	if (call->collective == MMC_PY_BCAST ||
	    (uint64_t)call->result.len % express->nranks == 0)
		result = carry_result(express, call);
	release(call);
	return result;
}

static int carry_allgather(struct mmc_py_express *express,
			   PyObject *const *arguments, bool is_forced)
{
	struct call call = {
		.arguments = arguments,
		.stream = express->stream,
		.collective = MMC_PY_ALLGATHER,
		.is_forced = is_forced,
		.begin_ns = is_forced ? 0 : now_ns(),
		.operation.kind = MMC_ALLGATHER,
	};

	return call.stream == NULL ? 0
				   : carry(express, &call, arguments[2], true);
}

static int carry_bcast(struct mmc_py_express *express,
		       PyObject *const *arguments, bool is_forced)
{
	struct call call = {
		.arguments = arguments,
		.stream = express->stream,
		.collective = MMC_PY_BCAST,
		.is_forced = is_forced,
		.begin_ns = is_forced ? 0 : now_ns(),
		.operation.kind = MMC_BCAST,
	};
	long root;

	if (call.stream == NULL || !PyLong_CheckExact(arguments[2]))
		return 0;
	root = PyLong_AsLong(arguments[2]);
	if (root == -1)
		PyErr_Clear();
	if (root < 0 || (uint64_t)root >= express->nranks)
		return 0;
	call.operation.root = (uint32_t)root;
	return carry(express, &call, arguments[1],
		     (uint64_t)root != express->rank);
}

/* ---- for Python ---------------------------------------------------------- */

static PyObject *answer(int result)
{
	return result < 0 ? NULL : PyBool_FromLong(result);
}

/*
 * Runs a collective; one whose blocks are small is the MPI library's unless `is_forced`.
 * Returns what Python gets: True if it has ended.
 */
static PyObject *run(PyObject *self, PyObject *const *arguments,
		     Py_ssize_t count, enum mmc_py_collective collective,
		     bool is_forced)
{
	struct mmc_py_express *express = (struct mmc_py_express *)self;
	bool gathers = collective == MMC_PY_ALLGATHER;
	int small = 0;

	if (count != 3) {
		PyErr_SetString(PyExc_TypeError, "3 arguments are expected");
		return NULL;
	}
	if (!is_forced)
		small = mmc_py_is_below(express->limits,
					arguments[gathers ? 2 : 1],
					gathers ? MMC_PY_BLOCKS : MMC_PY_BLOCK);
	if (small < 0)
		return NULL;
	if (small > 0)
		return answer(leave_to_library(express, collective, arguments));
	return answer(gathers ? carry_allgather(express, arguments, is_forced)
			      : carry_bcast(express, arguments, is_forced));
}

PyObject *mmc_py_allgather(PyObject *self, PyObject *const *arguments,
			   Py_ssize_t count)
{
	return run(self, arguments, count, MMC_PY_ALLGATHER, false);
}

PyObject *mmc_py_bcast(PyObject *self, PyObject *const *arguments,
		       Py_ssize_t count)
{
	return run(self, arguments, count, MMC_PY_BCAST, false);
}

PyObject *mmc_py_run_allgather(PyObject *self, PyObject *const *arguments,
			       Py_ssize_t count)
{
	return run(self, arguments, count, MMC_PY_ALLGATHER, true);
}

PyObject *mmc_py_run_bcast(PyObject *self, PyObject *const *arguments,
			   Py_ssize_t count)
{
	return run(self, arguments, count, MMC_PY_BCAST, true);
}

PyObject *mmc_py_run_node_barrier(PyObject *self, PyObject *none)
{
	struct mmc_py_express *express = (struct mmc_py_express *)self;
	const struct mmc_operation operation = { .kind = MMC_NODE_BARRIER };
	void *stream = express->stream;

	(void)none;
	return answer(stream == NULL ? 0
				     : mmc_py_drive(express, stream, &operation,
						    "node_barrier", NULL));
}

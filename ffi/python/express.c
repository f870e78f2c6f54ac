/* SPDX-License-Identifier: BSD-3-Clause */
#include "python/express.h"

#include <mpimcast/node.h>

#include <time.h>

#include "python/limits.h"

/* A call whose buffers are plain. */
struct call {
	PyObject *const *arguments; /* the communicator, then the method's */
	void *stream;
	enum mmc_py_collective collective;
	bool is_forced; /* mpimcast carries it, whatever its size */
	uint64_t begin_ns;
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

static void count(struct mmc_py_express *express, enum mmc_py_carrier carrier,
		  uint64_t begin_ns)
{
	struct mmc_py_tally *tally = &express->tallies[carrier];

	atomic_fetch_add_explicit(&tally->ncalls, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&tally->spent_ns, now_ns() - begin_ns,
				  memory_order_relaxed);
}

/* ---- operations ---------------------------------------------------------- */

/* Ends an operation even while there is an exception. */
static void give_up(const struct mmc_py_express *express, void *request)
{
	PyObject *type, *value, *traceback;
	PyThreadState *state;

	PyErr_Fetch(&type, &value, &traceback);
	state = PyEval_SaveThread();
	express->calls.cancel(request);
	express->calls.free(request);
	PyEval_RestoreThread(state);
	PyErr_Restore(type, value, traceback);
}

/* Lets Python finish an operation; returns 1, or -1 with an exception. */
static int finish(struct mmc_py_express *express, void **request,
		  const char *name, PyObject *const *arguments)
{
	PyObject *place = PyLong_FromVoidPtr(request), *result = NULL;

	if (place != NULL && arguments == NULL)
		result = PyObject_CallFunction(express->finish, "Os", place,
					       name);
	else if (place != NULL)
		result = PyObject_CallFunction(express->finish, "OsOO", place,
					       name, arguments[1],
					       arguments[2]);
	Py_XDECREF(place);
	Py_XDECREF(result);
	/* An exception may have come before Python could take care of the request. */
	if (*request != NULL)
		give_up(express, *request);
	return result == NULL ? -1 : 1;
}

/* Tells Python that multicast was suspended or resumed; returns as finish(). */
static int watch(struct mmc_py_express *express)
{
	PyObject *result;
	int suspended;

	if (express->between == NULL ||
	    (express->calls.unicast_epoch(express->between) != 0) ==
		    express->suspended)
		return 1;
	result = PyObject_CallFunctionObjArgs(express->watch, NULL);
	suspended = result == NULL ? -1 : PyObject_IsTrue(result);
	Py_XDECREF(result);
	if (suspended < 0)
		return -1;
	express->suspended = suspended > 0;
	return 1;
}

/* Returns 1 once an operation has ended, 0 if none was started, or -1: an exception. */
static int drive(struct mmc_py_express *express, void *stream,
		 const struct mmc_operation *operation, const char *name,
		 PyObject *const *arguments)
{
	void *request = NULL;
	PyThreadState *state = PyEval_SaveThread();
	int status = express->calls.start(stream, operation, express->slice_ns,
					  &request);
	int result = 1;

	PyEval_RestoreThread(state);
	if (status != 0) {
		if (request == NULL)
			return 0; /* Python finds out why, and says it */
		result = finish(express, &request, name, arguments);
	}
	return result < 0 ? -1 : watch(express);
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

/* Returns who carries a call, and counts it unless that is unknown; or -1. */
static int choose(struct mmc_py_express *express, struct call *call)
{
	struct mmc_operation *operation = &call->operation;
	struct mmc_py_class *class = &express->classes[call->collective][nbits(
		operation->block_bytes)];
	int found = operation->block_bytes == 0
			    ? 1
			    : mmc_py_find_key(&express->keys, call->result.buf,
					      &operation->shared);
	int carrier;

	if (found <= 0)
		return found < 0 ? -1 : MMC_PY_UNKNOWN;
	if (call->is_forced || operation->shared != 0)
		return MMC_PY_OURS;
	carrier = (int)atomic_load_explicit(&class->carrier,
					    memory_order_relaxed);
	if (class->ncalls + 1 == class->next_look)
		return MMC_PY_UNKNOWN;
	return carrier;
}

static void count_call(struct mmc_py_express *express, const struct call *call)
{
	if (call->is_forced || call->operation.shared != 0)
		return;
	atomic_fetch_add_explicit(
		&express->classes[call->collective]
				 [nbits(call->operation.block_bytes)]
					 .ncalls,
		1, memory_order_relaxed);
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

/* Carries a call whose result has been taken; returns as carry(). */
static int carry_result(struct mmc_py_express *express, struct call *call)
{
	int carrier = choose(express, call), result;

	if (carrier <= 0)
		return carrier;
	if (carrier == MMC_PY_LIBRARY) {
		count_call(express, call);
		/* Not even its buffers are mpimcast's business any more. */
		PyBuffer_Release(&call->result);
		result = leave_to_library(express, call->collective,
					  call->arguments);
	} else {
		if (!take_block(express, call))
			return 0;
		count_call(express, call);
		result = drive(express, call->stream, &call->operation,
			       names[call->collective], call->arguments);
	}
	if (result > 0 && !call->is_forced)
		count(express, (enum mmc_py_carrier)carrier, call->begin_ns);
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
	if (call->has_block)
		PyBuffer_Release(&call->block);
	PyBuffer_Release(&call->result); /* without effect, if done before */
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
				     : drive(express, stream, &operation,
					     "node_barrier", NULL));
}

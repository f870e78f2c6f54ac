/* SPDX-License-Identifier: BSD-3-Clause */
#include "python/drive.h"

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

int mmc_py_drive(struct mmc_py_express *express, void *stream,
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

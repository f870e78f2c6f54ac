/* SPDX-License-Identifier: BSD-3-Clause */
/* The bcast of an object whose pickle the MPI library carries. */
#include "python/sealing.h"
#include "python/small.h"

#include <string.h>

/* Open MPI broadcasts 128 bytes as fast as 48, but no more. */
#define HEADER_BYTES 128

static PyObject *get_rank_name, *acquire_name, *release_name;

/* What does not change in a communicator's life. */
struct bcast {
	PyObject_HEAD
		/* The MPI library's Bcast, and what keeps other threads out. */
		PyObject *function;
	PyObject *lock;
	/* Whoever has the lock uses this header. */
	PyObject *header;
};

static int call(PyObject *object, PyObject *name)
{
	PyObject *result = PyObject_CallMethodObjArgs(object, name, NULL);

	Py_XDECREF(result);
	return result == NULL ? -1 : 0;
}

/* Releases the lock even while there is an exception. */
static void release(struct bcast *bcast)
{
	PyObject *type, *value, *traceback;

	PyErr_Fetch(&type, &value, &traceback);
	if (call(bcast->lock, release_name) != 0)
		PyErr_Clear();
	PyErr_Restore(type, value, traceback);
}

static int broadcast(struct bcast *bcast, PyObject *comm, PyObject *buffer,
		     PyObject *root)
{
	PyObject *result = PyObject_CallFunctionObjArgs(bcast->function, comm,
							buffer, root, NULL);

	Py_XDECREF(result);
	return result == NULL ? -1 : 0;
}

/* Takes over the reference to `object`, which may be NULL; returns it in a tuple. */
static PyObject *alone(PyObject *object)
{
	PyObject *tuple = object == NULL ? NULL : PyTuple_Pack(1, object);

	Py_XDECREF(object);
	return tuple;
}

/* Returns (None, exception) for the exception that is raised. */
static PyObject *caught(void)
{
	PyObject *type, *value, *traceback, *tuple;

	PyErr_Fetch(&type, &value, &traceback);
	PyErr_NormalizeException(&type, &value, &traceback);
	if (traceback != NULL)
		PyException_SetTraceback(value, traceback);
	tuple = PyTuple_Pack(2, Py_None, value);
	Py_XDECREF(type);
	Py_XDECREF(value);
	Py_XDECREF(traceback);
	return tuple;
}

/* Broadcasts a header, and then the pickle if it is not in there. */
static int send_all(struct bcast *bcast, PyObject *comm, PyObject *pair,
		    PyObject *root)
{
	char *header = PyByteArray_AsString(bcast->header);

	if (mmc_py_fits(pair, HEADER_BYTES)) {
		mmc_py_write(header, HEADER_BYTES, pair);
		return broadcast(bcast, comm, bcast->header, root);
	}
	mmc_py_announce(header, HEADER_BYTES, pair);
	if (broadcast(bcast, comm, bcast->header, root) != 0)
		return -1;
	return broadcast(bcast, comm, PyTuple_GetItem(pair, 0), root);
}

static PyObject *send(struct bcast *bcast, PyObject *comm, PyObject *pair,
		      PyObject *root)
{
	int status;

	if (call(bcast->lock, acquire_name) != 0)
		return NULL;
	status = send_all(bcast, comm, pair, root);
	release(bcast);
	if (status != 0)
		return NULL;
	return alone(mmc_py_loads(PyTuple_GetItem(pair, 0)));
}

/* Returns the pickle; or NULL, without an exception if it is not the library's. */
static PyObject *receive_pickle(struct bcast *bcast, PyObject *comm,
				PyObject *root, long long small_bytes)
{
	const char *header = PyByteArray_AsString(bcast->header);
	long long nbytes = mmc_py_announced(header);
	PyObject *pickle;

	if (mmc_py_is_short(header))
		return mmc_py_read(header, HEADER_BYTES);
	if (nbytes < 0 || nbytes >= small_bytes)
		return NULL;
	pickle = PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)nbytes);
	if (pickle == NULL || broadcast(bcast, comm, pickle, root) == 0)
		return pickle;
	Py_DECREF(pickle);
	return NULL;
}

static PyObject *receive(struct bcast *bcast, PyObject *comm, PyObject *root,
			 long long small_bytes)
{
	PyObject *pickle = NULL, *result;

	if (call(bcast->lock, acquire_name) != 0)
		return NULL;
	if (broadcast(bcast, comm, bcast->header, root) == 0) {
		pickle = receive_pickle(bcast, comm, root, small_bytes);
		if (pickle == NULL && PyErr_Occurred() == NULL) {
			result = PyTuple_Pack(2, Py_None, bcast->header);
			if (result != NULL)
				return result; /* the lock is still held */
		}
	}
	release(bcast);
	result = pickle == NULL ? NULL : alone(mmc_py_loads(pickle));
	Py_XDECREF(pickle);
	return result;
}

/* The arguments are those of the method bcast, with the communicator before them. */
static PyObject *run(PyObject *self, PyObject *const *arguments,
		     Py_ssize_t count)
{
	struct bcast *bcast = (struct bcast *)self;
	PyObject *rank, *pair, *result;
	long long small_bytes;
	int sends;

	if (count != 4) {
		PyErr_SetString(PyExc_TypeError, "4 arguments are expected");
		return NULL;
	}
	small_bytes = PyLong_AsLongLong(arguments[3]);
	if (small_bytes == -1 && PyErr_Occurred() != NULL)
		return NULL;
	rank = PyObject_CallMethodObjArgs(arguments[0], get_rank_name, NULL);
	if (rank == NULL)
		return NULL;
	sends = PyObject_RichCompareBool(rank, arguments[2], Py_EQ);
	Py_DECREF(rank);
	if (sends < 0)
		return NULL;
	if (!sends)
		return receive(bcast, arguments[0], arguments[2], small_bytes);
	pair = mmc_py_dumps(arguments[1]);
	if (pair == NULL)
		return caught();
	if (!mmc_py_is_small(pair, small_bytes))
		return pair;
	result = send(bcast, arguments[0], pair, arguments[2]);
	Py_DECREF(pair);
	return result;
}

/* ---- the class ----------------------------------------------------------- */

static PyObject *create(PyTypeObject *type, PyObject *arguments,
			PyObject *keywords)
{
	allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
	struct bcast *bcast = (struct bcast *)allocate(type, 0);

	(void)keywords;
	if (bcast == NULL)
		return NULL;
	if (!PyArg_ParseTuple(arguments, "OO:Bcast", &bcast->function,
			      &bcast->lock)) {
		Py_DECREF(bcast);
		return NULL;
	}
	Py_INCREF(bcast->function);
	Py_INCREF(bcast->lock);
	bcast->header = PyByteArray_FromStringAndSize(NULL, HEADER_BYTES);
	if (bcast->header == NULL) {
		Py_DECREF(bcast);
		return NULL;
	}
	memset(PyByteArray_AsString(bcast->header), 0, HEADER_BYTES);
	return (PyObject *)bcast;
}

static void destroy(PyObject *self)
{
	struct bcast *bcast = (struct bcast *)self;
	PyTypeObject *type = Py_TYPE(self);
	freefunc deallocate = (freefunc)PyType_GetSlot(type, Py_tp_free);

	Py_XDECREF(bcast->function);
	Py_XDECREF(bcast->lock);
	Py_XDECREF(bcast->header);
	deallocate(self);
	Py_DECREF(type);
}

static PyMethodDef methods[] = {
	{ "run", (PyCFunction)(void (*)(void))run, METH_FASTCALL, NULL },
	{ NULL, NULL, 0, NULL },
};

static PyType_Slot slots[] = {
	{ Py_tp_methods, methods },
	{ Py_tp_new, (void *)create },
	{ Py_tp_dealloc, (void *)destroy },
	{ 0, NULL },
};

static PyType_Spec spec = {
	.name = "mpimcast._small.Bcast",
	.basicsize = sizeof(struct bcast),
	.flags = Py_TPFLAGS_DEFAULT,
	.slots = slots,
};

int mmc_py_add_bcast(PyObject *module)
{
	get_rank_name = PyUnicode_InternFromString("Get_rank");
	acquire_name = PyUnicode_InternFromString("acquire");
	release_name = PyUnicode_InternFromString("release");
	if (get_rank_name == NULL || acquire_name == NULL ||
	    release_name == NULL)
		return -1;
	if (PyModule_AddIntConstant(module, "BCAST_HEADER_BYTES",
				    HEADER_BYTES) != 0)
		return -1;
	return mmc_py_add(module, "Bcast", PyType_FromSpec(&spec));
}

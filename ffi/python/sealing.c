/* SPDX-License-Identifier: BSD-3-Clause */
/* Objects are pickled, and unpickled, and gathered if their pickles are short. */
#include "python/sealing.h"

#include "python/small.h"

#include <stdint.h>
#include <string.h>

/* A number in place of that of the buffers. */
#define SHORT UINT64_MAX
/* Older protocols of pickle have no buffers beside the pickle. */
#define PROTOCOL_OF_BUFFERS 5
/* In larger containers the pickler has to look for buffers. */
#define ITEMS_MAX 16
/* In an allgather, 256 bytes take hardly longer than fewer. */
#define ALLGATHER_HEADER_BYTES 256

/* mpi4py's pickler, with the user's settings, and its class of buffers. */
static PyObject *pickler, *frombuffer;

static PyObject *dumps_name, *dumps_oob_name, *loads_name, *protocol_name;
static PyObject *no_buffers;

static void put(char *place, uint64_t number)
{
	for (int i = 7; i >= 0; i--, number >>= 8)
		place[i] = (char)(number & 0xff);
}

static uint64_t get(const char *place)
{
	uint64_t number = 0;

	for (int i = 0; i < 8; i++)
		number = number << 8 | (unsigned char)place[i];
	return number;
}

/* ---- pickling ------------------------------------------------------------ */

static bool is_atom(PyObject *object)
{
	return object == Py_None || PyLong_CheckExact(object) ||
	       PyFloat_CheckExact(object) || PyUnicode_CheckExact(object) ||
	       PyBytes_CheckExact(object) || PyBool_Check(object);
}

static bool are_atoms(PyObject *tuple)
{
	for (Py_ssize_t i = 0; i < PyTuple_Size(tuple); i++) {
		if (!is_atom(PyTuple_GetItem(tuple, i)))
			return false;
	}
	return true;
}

/*
 * Without a GIL other threads may change these containers meanwhile, so the pickler has
 * to look into them.
 */
#ifndef Py_GIL_DISABLED
static bool list_has_atoms(PyObject *list)
{
	for (Py_ssize_t i = 0; i < PyList_Size(list); i++) {
		if (!is_atom(PyList_GetItem(list, i)))
			return false;
	}
	return true;
}

static bool dict_has_atoms(PyObject *dict)
{
	PyObject *key, *value;
	Py_ssize_t place = 0;

	while (PyDict_Next(dict, &place, &key, &value)) {
		if (!is_atom(key) || !is_atom(value))
			return false;
	}
	return true;
}
#endif

/* Whether an object certainly has no buffers that could be sent beside its pickle. */
static bool has_no_buffers(PyObject *object)
{
	if (is_atom(object))
		return true;
	if (PyTuple_CheckExact(object))
		return PyTuple_Size(object) <= ITEMS_MAX && are_atoms(object);
#ifndef Py_GIL_DISABLED
	if (PyDict_CheckExact(object))
		return PyDict_Size(object) <= ITEMS_MAX &&
		       dict_has_atoms(object);
	if (PyList_CheckExact(object))
		return PyList_Size(object) <= ITEMS_MAX &&
		       list_has_atoms(object);
#endif
	return false;
}

/* Returns 1 if the pickler may put buffers beside a pickle, or -1 on error. */
static int allows_buffers(void)
{
	PyObject *protocol = PyObject_GetAttr(pickler, protocol_name);
	long number;

	if (protocol == NULL)
		return -1;
	if (protocol == Py_None) {
		Py_DECREF(protocol);
		return 0;
	}
	number = PyLong_AsLong(protocol);
	Py_DECREF(protocol);
	if (number == -1 && PyErr_Occurred() != NULL)
		return -1;
	return number < 0 || number >= PROTOCOL_OF_BUFFERS;
}

static PyObject *dumps_anything(PyObject *object)
{
	PyObject *pickle, *pair;
	int allows = has_no_buffers(object) ? 0 : allows_buffers();

	if (allows < 0)
		return NULL;
	if (allows) {
		pair = PyObject_CallMethodObjArgs(pickler, dumps_oob_name,
						  object, NULL);
		/* The user's own function may not support separate buffers. */
		if (pair != NULL || !PyErr_ExceptionMatches(PyExc_TypeError))
			return pair;
		PyErr_Clear();
	}
	pickle = PyObject_CallMethodObjArgs(pickler, dumps_name, object, NULL);
	if (pickle == NULL)
		return NULL;
	pair = PyTuple_Pack(2, pickle, no_buffers);
	Py_DECREF(pickle);
	return pair;
}

PyObject *mmc_py_dumps(PyObject *object)
{
	PyObject *pair = dumps_anything(object), *pickle, *type;

	if (pair == NULL)
		return NULL;
	pickle = PyTuple_GetItem(pair, 0);
	if (pickle != NULL && PyBytes_Check(pickle))
		return pair;
	if (pickle != NULL) {
		type = PyObject_GetAttrString((PyObject *)Py_TYPE(pickle),
					      "__name__");
		if (type != NULL) /* the wording is mpi4py's */
			PyErr_Format(PyExc_TypeError,
				     "expected bytes, %U found", type);
		Py_XDECREF(type);
	}
	Py_DECREF(pair);
	return NULL;
}

bool mmc_py_is_small(PyObject *pair, long long small_bytes)
{
	return PyBytes_Size(PyTuple_GetItem(pair, 0)) < small_bytes &&
	       PyObject_Size(PyTuple_GetItem(pair, 1)) == 0;
}

bool mmc_py_fits(PyObject *pair, Py_ssize_t header_bytes)
{
	return PyBytes_Size(PyTuple_GetItem(pair, 0)) <= header_bytes - BEGIN;
}

void mmc_py_announce(char *header, Py_ssize_t header_bytes, PyObject *pair)
{
	memset(header, 0, (size_t)header_bytes);
	put(header, (uint64_t)PyBytes_Size(PyTuple_GetItem(pair, 0)));
}

void mmc_py_write(char *header, Py_ssize_t header_bytes, PyObject *pair)
{
	PyObject *pickle = PyTuple_GetItem(pair, 0);
	size_t nbytes = (size_t)PyBytes_Size(pickle);

	put(header, nbytes);
	put(header + 8, SHORT);
	memcpy(header + BEGIN, PyBytes_AsString(pickle), nbytes);
	memset(header + BEGIN + nbytes, 0,
	       (size_t)header_bytes - BEGIN - nbytes);
}

/* ---- unpickling ---------------------------------------------------------- */

bool mmc_py_is_short(const char *header)
{
	return get(header + 8) == SHORT;
}

long long mmc_py_announced(const char *header)
{
	uint64_t nbytes = get(header);

	return get(header + 8) != 0 || nbytes > INT64_MAX ? -1
							  : (long long)nbytes;
}

PyObject *mmc_py_read(const char *header, Py_ssize_t header_bytes)
{
	uint64_t nbytes = get(header);

	if (nbytes > (uint64_t)(header_bytes - BEGIN)) {
		PyErr_SetString(PyExc_ValueError, "a header is not valid");
		return NULL;
	}
	return PyBytes_FromStringAndSize(header + BEGIN, (Py_ssize_t)nbytes);
}

PyObject *mmc_py_loads(PyObject *pickle)
{
	PyObject *buffer, *object;

	if (PyObject_Size(pickle) == 0)
		return Py_NewRef(Py_None);
	/* The user's own function gets the type that mpi4py gives it. */
	buffer =
		PyObject_CallFunctionObjArgs(frombuffer, pickle, Py_True, NULL);
	if (buffer == NULL)
		return NULL;
	object = PyObject_CallMethodObjArgs(pickler, loads_name, buffer, NULL);
	Py_DECREF(buffer);
	return object;
}

/* ---- allgather ----------------------------------------------------------- */

static PyObject *seal(PyObject *module, PyObject *arguments)
{
	char header[ALLGATHER_HEADER_BYTES];
	PyObject *object, *pair;
	long long small_bytes;

	(void)module;
	if (!PyArg_ParseTuple(arguments, "OL:seal", &object, &small_bytes))
		return NULL;
	pair = mmc_py_dumps(object);
	if (pair == NULL || !mmc_py_is_small(pair, small_bytes) ||
	    !mmc_py_fits(pair, sizeof(header)))
		return pair;
	mmc_py_write(header, sizeof(header), pair);
	Py_DECREF(pair);
	return PyBytes_FromStringAndSize(header, sizeof(header));
}

static bool is_bytearray(PyObject *headers)
{
	if (PyByteArray_Check(headers))
		return true;
	PyErr_SetString(PyExc_TypeError, "a bytearray is expected");
	return false;
}

static PyObject *are_short(PyObject *module, PyObject *headers)
{
	const char *header;
	Py_ssize_t left;

	(void)module;
	if (!is_bytearray(headers))
		return NULL;
	header = PyByteArray_AsString(headers);
	left = PyByteArray_Size(headers);
	for (; left >= ALLGATHER_HEADER_BYTES; left -= ALLGATHER_HEADER_BYTES) {
		if (!mmc_py_is_short(header))
			Py_RETURN_FALSE;
		header += ALLGATHER_HEADER_BYTES;
	}
	Py_RETURN_TRUE;
}

/*
 * Returns the bytes of the pickles that follow the headers, 0 where a header is short, or
 * None if anything else follows.
 */
static PyObject *announced(PyObject *module, PyObject *headers)
{
	PyObject *sizes = is_bytearray(headers) ? PyList_New(0) : NULL;
	const char *header, *end;

	(void)module;
	if (sizes == NULL)
		return NULL;
	header = PyByteArray_AsString(headers);
	end = header + PyByteArray_Size(headers);
	for (; header < end; header += ALLGATHER_HEADER_BYTES) {
		long long nbytes =
			mmc_py_is_short(header) ? 0 : mmc_py_announced(header);
		PyObject *size = PyLong_FromLongLong(nbytes);
		int status = size == NULL ? -1 : PyList_Append(sizes, size);

		Py_XDECREF(size);
		if (status == 0 && nbytes >= 0)
			continue;
		Py_DECREF(sizes);
		if (status != 0)
			return NULL;
		Py_RETURN_NONE;
	}
	return sizes;
}

/* Returns the pickle of the header at `at`, or the next one of the `pickles`. */
static PyObject *pickle_at(PyObject *headers, Py_ssize_t at, PyObject *pickles,
			   Py_ssize_t *begin)
{
	const char *header = PyByteArray_AsString(headers) + at;
	long long nbytes;

	if (mmc_py_is_short(header))
		return mmc_py_read(header, ALLGATHER_HEADER_BYTES);
	nbytes = mmc_py_announced(header);
	if (nbytes < 0 || nbytes > PyByteArray_Size(pickles) - *begin) {
		PyErr_SetString(PyExc_ValueError, "a pickle is missing");
		return NULL;
	}
	*begin += (Py_ssize_t)nbytes;
	return PyBytes_FromStringAndSize(PyByteArray_AsString(pickles) +
						 *begin - nbytes,
					 (Py_ssize_t)nbytes);
}

/* To load a pickle may run any code, so the headers' memory is looked up each time. */
static PyObject *unseal(PyObject *module, PyObject *arguments)
{
	PyObject *headers, *pickles, *objects;
	Py_ssize_t begin = 0;

	(void)module;
	if (!PyArg_ParseTuple(arguments, "OO:unseal", &headers, &pickles) ||
	    !is_bytearray(headers) || !is_bytearray(pickles))
		return NULL;
	objects = PyList_New(0);
	for (Py_ssize_t at = 0;
	     objects != NULL &&
	     at + ALLGATHER_HEADER_BYTES <= PyByteArray_Size(headers);
	     at += ALLGATHER_HEADER_BYTES) {
		PyObject *pickle = pickle_at(headers, at, pickles, &begin);
		PyObject *object = pickle == NULL ? NULL : mmc_py_loads(pickle);

		if (object == NULL || PyList_Append(objects, object) != 0)
			Py_CLEAR(objects);
		Py_XDECREF(object);
		Py_XDECREF(pickle);
	}
	return objects;
}

/* ---- the functions, and the module --------------------------------------- */

static PyObject *prepare(PyObject *module, PyObject *arguments)
{
	(void)module;
	if (!PyArg_ParseTuple(arguments, "OO:prepare", &pickler, &frombuffer))
		return NULL;
	Py_INCREF(pickler);
	Py_INCREF(frombuffer);
	Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
	{ "prepare", prepare, METH_VARARGS, NULL },
	{ "seal", seal, METH_VARARGS, NULL },
	{ "are_short", are_short, METH_O, NULL },
	{ "announced", announced, METH_O, NULL },
	{ "unseal", unseal, METH_VARARGS, NULL },
	{ NULL, NULL, 0, NULL },
};

int mmc_py_add_sealing(PyObject *module)
{
	dumps_name = PyUnicode_InternFromString("dumps");
	dumps_oob_name = PyUnicode_InternFromString("dumps_oob");
	loads_name = PyUnicode_InternFromString("loads");
	protocol_name = PyUnicode_InternFromString("PROTOCOL");
	no_buffers = PyTuple_New(0);
	if (dumps_name == NULL || dumps_oob_name == NULL ||
	    loads_name == NULL || protocol_name == NULL || no_buffers == NULL)
		return -1;
	if (PyModule_AddIntConstant(module, "ALLGATHER_HEADER_BYTES",
				    ALLGATHER_HEADER_BYTES) != 0)
		return -1;
	return PyModule_AddFunctions(module, functions);
}

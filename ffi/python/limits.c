/* SPDX-License-Identifier: BSD-3-Clause */
#include "python/limits.h"

#include "python/plain.h"
#include "python/small.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>

/* The product of both, and the sum of two counts, fit in a long long. */
#define COUNT_MAX (1LL << 48)
#define ITEM_BYTES_MAX (1LL << 12)
#define UNKNOWN (-1LL)

/*
 * Called with a message that is small; says whether the MPI library must not carry it
 * nevertheless. NULL for as long as no message is such.
 */
static PyObject *_Atomic holds_back;

/*
 * Called with a message that is small, unless it is certainly in the host's memory; says
 * whether it is in a device's. NULL before MPI is in use.
 */
static PyObject *_Atomic on_device;

struct limits {
	PyObject_HEAD
		/* A smaller result, or a smaller block, is the MPI library's. */
		_Atomic(long long) result_bytes;
	_Atomic(long long) block_bytes;
	_Atomic(long long) nsmall; /* messages that were the MPI library's */
};

/* The size of each predefined datatype, by the address of its object. */
static PyObject *type_sizes;
static PyObject *array_type;
static PyObject *nbytes_name;
static PyObject *itemsize_name;

/* Takes over the reference to `number`; returns UNKNOWN in place of an error. */
static long long take_number(PyObject *number, long long max)
{
	long long value = UNKNOWN;

	if (number == NULL) {
		PyErr_Clear();
		return UNKNOWN;
	}
	if (PyLong_Check(number))
		value = PyLong_AsLongLong(number);
	else if (PyIndex_Check(number))
		value = PyNumber_AsSsize_t(number, NULL);
	if (value == -1)
		PyErr_Clear();
	Py_DECREF(number);
	return value < 0 || value > max ? UNKNOWN : value;
}

static long long attribute(PyObject *object, PyObject *name, long long max)
{
	return take_number(PyObject_GetAttr(object, name), max);
}

static long long length_of(PyObject *object)
{
	Py_ssize_t length = PyObject_Size(object);

	if (length < 0)
		PyErr_Clear();
	return length;
}

static long long sum(PyObject *counts)
{
	long long length = length_of(counts), total = 0;

	if (length < 0)
		return UNKNOWN;
	for (Py_ssize_t i = 0; i < length; i++) {
		PyObject *count = PySequence_GetItem(counts, i);
		long long each = take_number(count, COUNT_MAX);

		if (each == UNKNOWN || total > COUNT_MAX - each)
			return UNKNOWN;
		total += each;
	}
	return total;
}

static long long size_of_type(PyObject *datatype)
{
	PyObject *key = PyLong_FromVoidPtr(datatype), *size;

	if (key == NULL) {
		PyErr_Clear();
		return UNKNOWN;
	}
	size = PyDict_GetItemWithError(type_sizes, key);
	Py_DECREF(key);
	Py_XINCREF(size);
	return take_number(size, ITEM_BYTES_MAX);
}

static bool is_bytes(PyObject *buffer)
{
	return PyByteArray_CheckExact(buffer) || PyBytes_CheckExact(buffer);
}

/* At least the size of an item: mpi4py takes some items for single bytes. */
static long long size_of_item(PyObject *buffer)
{
	if (is_bytes(buffer))
		return 1;
	return attribute(buffer, itemsize_name, ITEM_BYTES_MAX);
}

static long long size_of_buffer(PyObject *buffer)
{
	long long length, size;

	if (is_bytes(buffer))
		return length_of(buffer);
	if ((PyObject *)Py_TYPE(buffer) != array_type)
		return attribute(buffer, nbytes_name, LLONG_MAX);
	length = length_of(buffer);
	size = size_of_item(buffer);
	return length < 0 || size < 0 ? UNKNOWN : length * size;
}

static bool below(long long count, long long size, long long limit)
{
	return count != UNKNOWN && size != UNKNOWN && count * size < limit;
}

static bool counts_are_below(PyObject *counts, long long size,
			     enum mmc_py_form form, const struct limits *limits)
{
	if (form == MMC_PY_VECTOR && PySequence_Check(counts))
		return below(sum(counts), size, limits->result_bytes);
	Py_INCREF(counts);
	return below(take_number(counts, COUNT_MAX), size, limits->block_bytes);
}

/* Replaces a pair of counts and displacements by the counts, or by NULL. */
static void split_pair(PyObject **counts, enum mmc_py_form form)
{
	PyObject *pair = *counts;

	if (PyTuple_CheckExact(pair) ||
	    (form != MMC_PY_VECTOR && PyList_CheckExact(pair))) {
		*counts = PySequence_GetItem(pair, 0);
		Py_DECREF(pair);
	}
}

static long long limit_of(enum mmc_py_form form, const struct limits *limits)
{
	return form == MMC_PY_BLOCK ? limits->block_bytes
				    : limits->result_bytes;
}

/* The items are a buffer, counts, displacements and a type; two may be absent. */
static bool items_are_below(PyObject **items, Py_ssize_t length,
			    enum mmc_py_form form, const struct limits *limits)
{
	PyObject *last = items[length - 1];
	bool counts = length == 2 &&
		      (PyList_CheckExact(last) || PyTuple_CheckExact(last));
	long long size = counts ? UNKNOWN : size_of_type(last);

	if (length == 2) {
		if (size != UNKNOWN)
			return below(size_of_buffer(items[0]), 1,
				     limit_of(form, limits));
		size = size_of_item(items[0]);
	}
	if (length < 4)
		split_pair(&items[1], form);
	if (items[1] == NULL) {
		PyErr_Clear();
		return false;
	}
	return counts_are_below(items[1], size, form, limits);
}

static bool list_is_below(PyObject *list, enum mmc_py_form form,
			  const struct limits *limits)
{
	PyObject *items[4];
	Py_ssize_t length = PySequence_Size(list), nitems = 0;
	bool result = false;

	if (length < 2 || length > 4)
		return false;
	while (nitems < length) {
		items[nitems] = PySequence_GetItem(list, nitems);
		if (items[nitems] == NULL)
			break;
		nitems++;
	}
	if (nitems == length)
		result = items_are_below(items, length, form, limits);
	else
		PyErr_Clear(); /* another thread has shortened the list */
	while (nitems-- > 0)
		Py_XDECREF(items[nitems]);
	return result;
}

static int count_small(struct limits *limits)
{
	atomic_fetch_add_explicit(&limits->nsmall, 1, memory_order_relaxed);
	return 1;
}

/* Returns whether `function`, which may be NULL, says so of a message; or -1. */
static int asked(PyObject *function, PyObject *message)
{
	PyObject *answer;
	int result;

	if (function == NULL)
		return 0;
	answer = PyObject_CallFunctionObjArgs(function, message, NULL);
	if (answer == NULL)
		return -1;
	result = PyObject_IsTrue(answer);
	Py_DECREF(answer);
	return result;
}

static bool is_of_host(PyObject *message)
{
	PyObject *buffer;
	bool result;

	if (!PyList_CheckExact(message) && !PyTuple_CheckExact(message))
		return mmc_py_is_of_host(message);
	buffer = PySequence_GetItem(message, 0);
	if (buffer == NULL)
		PyErr_Clear(); /* empty, which is mpi4py's to refuse */
	result = buffer == NULL || mmc_py_is_of_host(buffer);
	Py_XDECREF(buffer);
	return result;
}

/* Returns the answer for a message that is small: whether Python lets it pass. */
static int passes(PyObject *message, struct limits *limits)
{
	int held = asked(holds_back, message);

	if (held == 0 && !is_of_host(message))
		held = asked(on_device, message);
	return held != 0 ? -(held < 0) : count_small(limits);
}

int mmc_py_is_below(PyObject *self, PyObject *message, enum mmc_py_form form)
{
	struct limits *limits = (struct limits *)self;
	long long limit = limit_of(form, limits);
	bool result = limit == LLONG_MAX;

	if (limit > 0 && !result) {
		if (PyList_CheckExact(message) || PyTuple_CheckExact(message))
			result = list_is_below(message, form, limits);
		else
			result = below(size_of_buffer(message), 1, limit);
	}
	return result ? passes(message, limits) : 0;
}

bool mmc_py_may_share(void)
{
	return holds_back != NULL;
}

static PyObject *is_below(PyObject *limits, PyObject *message,
			  enum mmc_py_form form)
{
	int result = mmc_py_is_below(limits, message, form);

	return result < 0 ? NULL : PyBool_FromLong(result);
}

/* ---- the class ----------------------------------------------------------- */

static PyObject *limits_block(PyObject *self, PyObject *message)
{
	return is_below(self, message, MMC_PY_BLOCK);
}

static PyObject *limits_blocks(PyObject *self, PyObject *message)
{
	return is_below(self, message, MMC_PY_BLOCKS);
}

static PyObject *limits_vector(PyObject *self, PyObject *message)
{
	return is_below(self, message, MMC_PY_VECTOR);
}

static PyObject *limits_set(PyObject *self, PyObject *arguments)
{
	struct limits *limits = (struct limits *)self;
	long long result_bytes, block_bytes;

	if (!PyArg_ParseTuple(arguments, "LL:set", &result_bytes, &block_bytes))
		return NULL;
	limits->result_bytes = result_bytes;
	limits->block_bytes = block_bytes;
	Py_RETURN_NONE;
}

static PyObject *limits_nsmall(PyObject *self, PyObject *none)
{
	(void)none;
	return PyLong_FromLongLong(((struct limits *)self)->nsmall);
}

/* Keeps the function for ever, since other threads may be about to call it. */
static void keep(PyObject *_Atomic *place, PyObject *function)
{
	PyObject *none = NULL;

	Py_INCREF(function);
	if (!atomic_compare_exchange_strong(place, &none, function))
		Py_DECREF(function);
}

static PyObject *limits_hold_back(PyObject *type, PyObject *function)
{
	(void)type;
	keep(&holds_back, function);
	Py_RETURN_NONE;
}

/* The arguments are the class of mpi4py's buffers, and a function. */
static PyObject *limits_heed_devices(PyObject *type, PyObject *arguments)
{
	PyObject *doubted, *function;

	(void)type;
	if (!PyArg_ParseTuple(arguments, "OO:heed_devices", &doubted,
			      &function))
		return NULL;
	mmc_py_doubt(doubted);
	keep(&on_device, function);
	Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
	{ "small_block", limits_block, METH_O, NULL },
	{ "small_blocks", limits_blocks, METH_O, NULL },
	{ "small_vector", limits_vector, METH_O, NULL },
	{ "nsmall", limits_nsmall, METH_NOARGS, NULL },
	{ "set", limits_set, METH_VARARGS, NULL },
	{ "hold_back", limits_hold_back, METH_O | METH_STATIC, NULL },
	{ "heed_devices", limits_heed_devices, METH_VARARGS | METH_STATIC,
	  NULL },
	{ NULL, NULL, 0, NULL },
};

static PyType_Slot type_slots[] = {
	{ Py_tp_methods, methods },
	{ 0, NULL },
};

static PyType_Spec type_spec = {
	.name = "mpimcast._small.Limits",
	.basicsize = sizeof(struct limits),
	.flags = Py_TPFLAGS_DEFAULT,
	.slots = type_slots,
};

int mmc_py_add_limits(PyObject *module)
{
	PyObject *array = PyImport_ImportModule("array");

	if (array == NULL)
		return -1;
	array_type = PyObject_GetAttrString(array, "array");
	Py_DECREF(array);
	nbytes_name = PyUnicode_InternFromString("nbytes");
	itemsize_name = PyUnicode_InternFromString("itemsize");
	type_sizes = PyDict_New();
	if (array_type == NULL || nbytes_name == NULL ||
	    itemsize_name == NULL || type_sizes == NULL)
		return -1;
	if (PyModule_AddObjectRef(module, "TYPE_SIZES", type_sizes) != 0)
		return -1;
	return mmc_py_add(module, "Limits", PyType_FromSpec(&type_spec));
}

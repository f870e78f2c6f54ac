/* SPDX-License-Identifier: BSD-3-Clause */
#include "python/plain.h"

#include <string.h>

/* The formats of numbers that mpi4py knows, one letter each. */
#define FORMATS "BbhHiIlLqQfd?"

static PyObject *array_type, *dtype_name, *obj_name, *doubted_type;

/* NumPy has one object for each of its own types, so another object is another type. */
static bool is_plain_type(const struct mmc_py_numpy *numpy, PyObject *dtype)
{
	Py_ssize_t ntypes = PyTuple_Size(numpy->plain_types);

	for (Py_ssize_t i = 0; i < ntypes; i++)
		if (PyTuple_GetItem(numpy->plain_types, i) == dtype)
			return true;
	return false;
}

static bool take(PyObject *object, int flags, Py_buffer *view)
{
	if (PyObject_GetBuffer(object, view, flags) == 0)
		return true;
	PyErr_Clear(); /* not contiguous, or read-only */
	return false;
}

static bool take_array(const struct mmc_py_numpy *numpy, PyObject *array,
		       int flags, Py_buffer *view)
{
	PyObject *dtype = PyObject_GetAttr(array, dtype_name);
	bool is_plain = dtype != NULL && is_plain_type(numpy, dtype);

	if (dtype == NULL)
		PyErr_Clear();
	Py_XDECREF(dtype);
	return is_plain && take(array, flags, view);
}

static bool take_by_format(PyObject *object, int flags, Py_buffer *view)
{
	if (!mmc_py_is_of_host(object))
		return false;
	if (!take(object, flags | PyBUF_ND | PyBUF_FORMAT, view))
		return false;
	if (view->format != NULL && strlen(view->format) == 1 &&
	    strchr(FORMATS, view->format[0]) != NULL)
		return true;
	PyBuffer_Release(view);
	return false;
}

bool mmc_py_take_plain(const struct mmc_py_numpy *numpy, PyObject *object,
		       bool writable, Py_buffer *view)
{
	PyObject *type = (PyObject *)Py_TYPE(object);
	int flags = writable ? PyBUF_WRITABLE : PyBUF_SIMPLE;

	if (type == numpy->array_type)
		return take_array(numpy, object, flags, view);
	if (PyByteArray_CheckExact(object) || PyBytes_CheckExact(object))
		return take(object, flags, view);
	if (type == array_type || PyMemoryView_Check(object))
		return take_by_format(object, flags, view);
	return false;
}

void mmc_py_doubt(PyObject *type)
{
	Py_INCREF(type);
	doubted_type = type;
}

bool mmc_py_is_of_host(PyObject *object)
{
	PyObject *owner;
	bool result;

	if (!PyMemoryView_Check(object))
		return (PyObject *)Py_TYPE(object) != doubted_type &&
		       PyObject_CheckBuffer(object);
	owner = PyObject_GetAttr(object, obj_name);
	result = owner != NULL && (PyObject *)Py_TYPE(owner) != doubted_type;
	if (owner == NULL)
		PyErr_Clear(); /* the view was released */
	Py_XDECREF(owner);
	return result;
}

int mmc_py_prepare_plain(void)
{
	PyObject *module = PyImport_ImportModule("array");

	if (module == NULL)
		return -1;
	array_type = PyObject_GetAttrString(module, "array");
	Py_DECREF(module);
	dtype_name = PyUnicode_InternFromString("dtype");
	obj_name = PyUnicode_InternFromString("obj");
	return array_type == NULL || dtype_name == NULL || obj_name == NULL ? -1
									    : 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "python/keys.h"

#include <string.h>

#include "python/limits.h"

static PyObject *known_name;

static uint32_t place_of(const void *address)
{
	uint64_t mixed = (uint64_t)(uintptr_t)address >> 4;

	return (uint32_t)((mixed * UINT64_C(0x9e3779b97f4a7c15)) >> 32) %
	       MMC_PY_KEYS;
}

/* A thread that finds the keys busy asks Python: that takes longer, but does not wait. */
static bool look_up(struct mmc_py_keys *keys, const PyObject *known,
		    const void *address, uint64_t *key)
{
	uint32_t place = place_of(address);
	bool found;

	if (atomic_flag_test_and_set_explicit(&keys->busy,
					      memory_order_acquire))
		return false;
	found = keys->known == known && keys->found[place].address == address;
	if (found)
		*key = keys->found[place].key;
	atomic_flag_clear_explicit(&keys->busy, memory_order_release);
	return found;
}

static void remember(struct mmc_py_keys *keys, PyObject *known,
		     const void *address, uint64_t key)
{
	PyObject *former = NULL;
	uint32_t place = place_of(address);

	if (atomic_flag_test_and_set_explicit(&keys->busy,
					      memory_order_acquire))
		return;
	if (keys->known != known) {
		former = keys->known;
		/* While it is held here, no other object has its address. */
		keys->known = Py_NewRef(known);
		memset(keys->found, 0, sizeof(keys->found));
	}
	keys->found[place].address = address;
	keys->found[place].key = key;
	atomic_flag_clear_explicit(&keys->busy, memory_order_release);
	Py_XDECREF(former);
}

/* Writes what Python says of an address; returns as mmc_py_find_key(). */
static int ask(const struct mmc_py_keys *keys, const void *address,
	       uint64_t *key)
{
	PyObject *number = PyLong_FromVoidPtr((void *)address);
	PyObject *found = NULL;
	long long value;

	if (number != NULL)
		found = PyObject_CallFunctionObjArgs(keys->find, number, NULL);
	Py_XDECREF(number);
	if (found == NULL)
		return -1;
	value = PyLong_AsLongLong(found);
	Py_DECREF(found);
	if (value == -1)
		return PyErr_Occurred() != NULL ? -1 : 0;
	*key = (uint64_t)value;
	return 1;
}

int mmc_py_find_key(struct mmc_py_keys *keys, const void *address,
		    uint64_t *key)
{
	PyObject *known;
	int result = 1;

	*key = 0;
	if (!mmc_py_may_share())
		return 1;
	known = PyObject_GetAttr(keys->memories, known_name);
	if (known == NULL)
		return -1;
	if (PyObject_Size(known) > 0 && !look_up(keys, known, address, key)) {
		result = ask(keys, address, key);
		if (result > 0)
			remember(keys, known, address, *key);
	}
	Py_DECREF(known);
	return result;
}

int mmc_py_prepare_keys(void)
{
	known_name = PyUnicode_InternFromString("known");
	return known_name == NULL ? -1 : 0;
}

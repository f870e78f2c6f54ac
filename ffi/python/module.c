/* SPDX-License-Identifier: BSD-3-Clause */
#include "python/small.h"

int mmc_py_add(PyObject *module, const char *name, PyObject *value)
{
	int status = PyModule_AddObjectRef(module, name, value);

	Py_XDECREF(value);
	return status;
}

static int execute(PyObject *module)
{
	if (mmc_py_add_limits(module) != 0 || mmc_py_add_sealing(module) != 0)
		return -1;
	if (mmc_py_add_bcast(module) != 0)
		return -1;
	return mmc_py_add_express(module);
}

static PyModuleDef_Slot slots[] = {
	{ Py_mod_exec, execute },
#ifdef Py_GIL_DISABLED
	{ Py_mod_gil, Py_MOD_GIL_NOT_USED },
#endif
	{ 0, NULL },
};

static PyMethodDef functions[] = {
	{ "nloaded", mmc_py_nloaded, METH_NOARGS, NULL },
	{ "bell", mmc_py_bell, METH_NOARGS, NULL },
	{ "listen", mmc_py_listen, METH_O, NULL },
	{ NULL, NULL, 0, NULL },
};

static struct PyModuleDef definition = {
	PyModuleDef_HEAD_INIT,
	.m_name = "_small",
	.m_methods = functions,
	.m_slots = slots,
};

PyMODINIT_FUNC PyInit__small(void)
{
	return PyModuleDef_Init(&definition);
}

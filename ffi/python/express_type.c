/* SPDX-License-Identifier: BSD-3-Clause */
/* The class Express: its objects, and what Python tells them. */
#include "python/express.h"
#include "python/small.h"

#include <string.h>

static struct mmc_py_class *find_class(struct mmc_py_express *express,
				       unsigned int collective,
				       unsigned int nbits)
{
	if (collective < MMC_PY_COLLECTIVES && nbits < MMC_PY_CLASSES)
		return &express->classes[collective][nbits];
	PyErr_SetString(PyExc_ValueError, "there is no such class of sizes");
	return NULL;
}

static bool check_carrier(const struct mmc_py_express *express,
			  unsigned int carrier)
{
	if (carrier < MMC_PY_CARRIERS &&
	    (carrier != MMC_PY_TRIAL || express->trials.begin != NULL))
		return true;
	PyErr_SetString(PyExc_ValueError, "there is no such carrier");
	return false;
}

/* The arguments are a collective, the bits of its sizes, a carrier and a call. */
static PyObject *take(PyObject *self, PyObject *arguments)
{
	unsigned int collective, nbits, carrier;
	unsigned long long next_look;
	struct mmc_py_class *class;

	if (!PyArg_ParseTuple(arguments, "IIIK:take", &collective, &nbits,
			      &carrier, &next_look))
		return NULL;
	class = find_class((struct mmc_py_express *)self, collective, nbits);
	if (class == NULL ||
	    !check_carrier((struct mmc_py_express *)self, carrier))
		return NULL;
	class->next_look = next_look;
	class->carrier = carrier;
	Py_RETURN_NONE;
}

static PyObject *take_all(PyObject *self, PyObject *arguments)
{
	struct mmc_py_express *express = (struct mmc_py_express *)self;
	unsigned int carrier;

	if (!PyArg_ParseTuple(arguments, "I:take_all", &carrier) ||
	    !check_carrier(express, carrier))
		return NULL;
	for (int i = 0; i < MMC_PY_COLLECTIVES; i++)
		for (int k = 0; k < MMC_PY_CLASSES; k++)
			express->classes[i][k].carrier = carrier;
	Py_RETURN_NONE;
}

/* The arguments are a collective and the bits of its sizes. */
static PyObject *count_call(PyObject *self, PyObject *arguments)
{
	unsigned int collective, nbits;
	struct mmc_py_class *class;

	if (!PyArg_ParseTuple(arguments, "II:count_call", &collective, &nbits))
		return NULL;
	class = find_class((struct mmc_py_express *)self, collective, nbits);
	if (class == NULL)
		return NULL;
	return PyLong_FromUnsignedLongLong(atomic_fetch_add(&class->ncalls, 1) +
					   1);
}

/* The arguments are a collective and the bits of its sizes. */
static PyObject *take_untold(PyObject *self, PyObject *arguments)
{
	unsigned int collective, nbits;
	struct mmc_py_class *class;

	if (!PyArg_ParseTuple(arguments, "II:take_untold", &collective, &nbits))
		return NULL;
	class = find_class((struct mmc_py_express *)self, collective, nbits);
	if (class == NULL)
		return NULL;
	return PyLong_FromUnsignedLongLong(
		atomic_exchange(&class->untold_ns, 0));
}

/* The arguments are a collective, the bits of its sizes and nanoseconds. */
static PyObject *keep_untold(PyObject *self, PyObject *arguments)
{
	unsigned int collective, nbits;
	unsigned long long took_ns;
	struct mmc_py_class *class;

	if (!PyArg_ParseTuple(arguments, "IIK:keep_untold", &collective, &nbits,
			      &took_ns))
		return NULL;
	class = find_class((struct mmc_py_express *)self, collective, nbits);
	if (class == NULL)
		return NULL;
	class->untold_ns = took_ns;
	Py_RETURN_NONE;
}

static PyObject *report(const struct mmc_py_tally tallies[MMC_PY_CARRIERS])
{
	const struct mmc_py_tally *ours = &tallies[MMC_PY_OURS];
	const struct mmc_py_tally *library = &tallies[MMC_PY_LIBRARY];

	return Py_BuildValue("(KKKK)", (unsigned long long)ours->ncalls,
			     (unsigned long long)ours->spent_ns,
			     (unsigned long long)library->ncalls,
			     (unsigned long long)library->spent_ns);
}

static PyObject *counts(PyObject *self, PyObject *none)
{
	(void)none;
	return report(((struct mmc_py_express *)self)->tallies);
}

static PyObject *trial_counts(PyObject *self, PyObject *none)
{
	(void)none;
	return report(((struct mmc_py_express *)self)->trials.tallies);
}

/* ---- begin and end ------------------------------------------------------- */

static void *pointer(unsigned long long address)
{
	return (void *)(uintptr_t)address;
}

/* Takes over nothing: all objects stay the caller's, too. */
static void hold(struct mmc_py_express *express)
{
	Py_INCREF(express->numpy.array_type);
	Py_INCREF(express->numpy.plain_types);
	Py_INCREF(express->keys.memories);
	Py_INCREF(express->keys.find);
	Py_INCREF(express->in_place);
	Py_INCREF(express->finish);
	Py_INCREF(express->watch);
}

/* Begins the express way on a stream; see _small.pyi for the arguments. */
static PyObject *begin(PyObject *self, PyObject *arguments)
{
	struct mmc_py_express *express = (struct mmc_py_express *)self;
	struct mmc_py_express made = { .stream = NULL };
	unsigned long long addresses[6], slice_ns, rank, nranks;

	if (!PyArg_ParseTuple(arguments, "(KKKKKK)(KKK)(OOOO)(OOO):begin",
			      &addresses[0], &addresses[1], &addresses[2],
			      &addresses[3], &addresses[4], &addresses[5],
			      &slice_ns, &rank, &nranks, &made.numpy.array_type,
			      &made.numpy.plain_types, &made.keys.memories,
			      &made.in_place, &made.finish, &made.keys.find,
			      &made.watch))
		return NULL;
	if (express->finish != NULL || nranks == 0 ||
	    !PyTuple_Check(made.numpy.plain_types)) {
		PyErr_SetString(PyExc_ValueError, "the way cannot begin so");
		return NULL;
	}
	hold(&made);
	express->slice_ns = slice_ns;
	express->rank = rank;
	express->nranks = nranks;
	express->numpy = made.numpy;
	express->keys.memories = made.keys.memories;
	express->keys.find = made.keys.find;
	express->in_place = made.in_place;
	express->finish = made.finish;
	express->watch = made.watch;
	express->between = pointer(addresses[1]);
	/* All of these are functions of the signatures in struct mmc_py_calls. */
	memcpy(&express->calls,
	       (uintptr_t[]){ (uintptr_t)addresses[2], (uintptr_t)addresses[3],
			      (uintptr_t)addresses[4],
			      (uintptr_t)addresses[5] },
	       sizeof(express->calls));
	express->stream = pointer(addresses[0]);
	Py_RETURN_NONE;
}

/* Prepares trials; see _small.pyi for the arguments. */
static PyObject *measure(PyObject *self, PyObject *arguments)
{
	struct mmc_py_express *express = (struct mmc_py_express *)self;
	PyObject *times_ns, *begin_trial, *run;
	Py_buffer view;

	if (!PyArg_ParseTuple(arguments, "OOO:measure", &times_ns, &begin_trial,
			      &run) ||
	    PyObject_GetBuffer(times_ns, &view, PyBUF_WRITABLE) != 0)
		return NULL;
	if (express->trials.begin != NULL || express->stream == NULL ||
	    (uint64_t)view.len != express->nranks * sizeof(uint64_t)) {
		PyBuffer_Release(&view);
		PyErr_SetString(PyExc_ValueError, "the way cannot measure so");
		return NULL;
	}
	express->trials.times_ns = Py_NewRef(times_ns);
	express->trials.view = view;
	express->trials.begin = Py_NewRef(begin_trial);
	express->trials.run = Py_NewRef(run);
	Py_RETURN_NONE;
}

static PyObject *end(PyObject *self, PyObject *none)
{
	(void)none;
	((struct mmc_py_express *)self)->stream = NULL;
	Py_RETURN_NONE;
}

/* ---- the class ----------------------------------------------------------- */

static PyObject *create(PyTypeObject *type, PyObject *arguments,
			PyObject *keywords)
{
	allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
	struct mmc_py_express *express;
	PyObject *limits, *allgather, *bcast;

	(void)keywords;
	if (!PyArg_ParseTuple(arguments, "OOO:Express", &limits, &allgather,
			      &bcast))
		return NULL;
	express = (struct mmc_py_express *)allocate(type, 0);
	if (express == NULL)
		return NULL;
	express->limits = Py_NewRef(limits);
	express->library[MMC_PY_ALLGATHER] = Py_NewRef(allgather);
	express->library[MMC_PY_BCAST] = Py_NewRef(bcast);
	atomic_flag_clear(&express->keys.busy);
	return (PyObject *)express;
}

static int traverse(PyObject *self, visitproc visit, void *arg)
{
	struct mmc_py_express *express = (struct mmc_py_express *)self;

	Py_VISIT(Py_TYPE(self));
	Py_VISIT(express->limits);
	Py_VISIT(express->keys.find);
	Py_VISIT(express->finish);
	Py_VISIT(express->watch);
	Py_VISIT(express->trials.begin);
	Py_VISIT(express->trials.run);
	return 0;
}

/* Another object of the garbage may call still: it finds that the way has ended. */
static int clear(PyObject *self)
{
	struct mmc_py_express *express = (struct mmc_py_express *)self;

	express->stream = NULL;
	Py_CLEAR(express->keys.find);
	Py_CLEAR(express->finish);
	Py_CLEAR(express->watch);
	Py_CLEAR(express->trials.begin);
	Py_CLEAR(express->trials.run);
	return 0;
}

static void destroy(PyObject *self)
{
	struct mmc_py_express *express = (struct mmc_py_express *)self;
	PyTypeObject *type = Py_TYPE(self);
	freefunc deallocate = (freefunc)PyType_GetSlot(type, Py_tp_free);

	PyObject_GC_UnTrack(self);
	clear(self);
	Py_XDECREF(express->limits);
	for (int i = 0; i < MMC_PY_COLLECTIVES; i++)
		Py_XDECREF(express->library[i]);
	Py_XDECREF(express->numpy.array_type);
	Py_XDECREF(express->numpy.plain_types);
	Py_XDECREF(express->keys.memories);
	Py_XDECREF(express->keys.known);
	Py_XDECREF(express->in_place);
	if (express->trials.times_ns != NULL)
		PyBuffer_Release(&express->trials.view);
	Py_XDECREF(express->trials.times_ns);
	deallocate(self);
	Py_DECREF(type);
}

#define FAST(function) (PyCFunction)(void (*)(void)) function, METH_FASTCALL

static PyMethodDef methods[] = {
	{ "allgather", FAST(mmc_py_allgather), NULL },
	{ "bcast", FAST(mmc_py_bcast), NULL },
	{ "run_allgather", FAST(mmc_py_run_allgather), NULL },
	{ "run_bcast", FAST(mmc_py_run_bcast), NULL },
	{ "run_node_barrier", mmc_py_run_node_barrier, METH_NOARGS, NULL },
	{ "take", take, METH_VARARGS, NULL },
	{ "take_all", take_all, METH_VARARGS, NULL },
	{ "count_call", count_call, METH_VARARGS, NULL },
	{ "take_untold", take_untold, METH_VARARGS, NULL },
	{ "keep_untold", keep_untold, METH_VARARGS, NULL },
	{ "counts", counts, METH_NOARGS, NULL },
	{ "trial_counts", trial_counts, METH_NOARGS, NULL },
	{ "begin", begin, METH_VARARGS, NULL },
	{ "measure", measure, METH_VARARGS, NULL },
	{ "end", end, METH_NOARGS, NULL },
	{ NULL, NULL, 0, NULL },
};

static PyType_Slot type_slots[] = {
	{ Py_tp_methods, methods },	      { Py_tp_new, (void *)create },
	{ Py_tp_traverse, (void *)traverse }, { Py_tp_clear, (void *)clear },
	{ Py_tp_dealloc, (void *)destroy },   { 0, NULL },
};

static PyType_Spec type_spec = {
	.name = "mpimcast._small.Express",
	.basicsize = sizeof(struct mmc_py_express),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
	.slots = type_slots,
};

int mmc_py_add_express(PyObject *module)
{
	if (mmc_py_prepare_plain() != 0 || mmc_py_prepare_keys() != 0)
		return -1;
	return mmc_py_add(module, "Express", PyType_FromSpec(&type_spec));
}

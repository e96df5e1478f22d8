# Distributed training, by hand.
#   make course   install, run every lecture, prove the exercises, grade the sample class
#   make test     what a change must pass: lint, types, tests; minutes
#   make lectures one run of every lecture; minutes
#   make answers  every right and wrong answer to the exercises, judged; minutes
#   make test-all the rest: answers, hostile hand-ins, kills, Slurm, a browser; most of an hour
#   make lab      JupyterLab on a copy of the course to work in
#   make book     the course as pages for any web server, in build/book
#   make bench    everything that claims to be fast, beside its rivals
#   make mutants  small mistakes in the solutions: does every test notice?
#   make soak     grading killed 100 times at random points
#   make release  wheel, source and the course's notebooks, as committed, in build/release
#   make exercises, make figures, make format    write what is generated
#
# PYTHON=python3.13 chooses another interpreter. TORCH=cpu asks for torch without CUDA, a tenth of
# the download, from an index that pip knows (PIP_EXTRA_INDEX_URL): torch's own site says which has
# it. Everything goes into .venv; a second run of any target installs nothing.

PYTHON ?= python3
BASE_PYTHON := $(shell command -v $(PYTHON))
SHELL := /bin/sh
MAKEFLAGS += --no-print-directory
export PATH := $(CURDIR)/.venv/bin:$(PATH)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Python compiles a file once, then, and not in each of some thousand processes.
unexport PYTHONDONTWRITEBYTECODE

# A new stamp is due when the requirements or the place of the checkout change.
KEY := $(shell { cat pyproject.toml constraints.txt; pwd; echo "$(TORCH)"; } | cksum | cut -d' ' -f1)
TORCH_VERSION := $(shell sed -n 's/^torch==//p' constraints.txt)$(TORCH:%=+%)
INSTALLED := .venv/installed-$(KEY)
INSTALLED_FOR_BENCH := .venv/installed-for-bench-$(KEY)
INSTALLED_FRAMEWORKS := .venv/installed-frameworks-$(KEY)

# Tests marked so take minutes each: make test leaves them to make test-all.
LONG := answers or corpus or soak or slurm or programs or browser
# Four at a time, on two cores too: a third of a test's seconds it waits for processes and limits,
# and so does a lecture. A file's tests stay together: many share a launch, a server or a class.
PYTEST := python -m pytest -n 4
RUN := autograder run --no-html --out build/test --jobs $(shell expr $$(nproc 2>/dev/null || echo 2) + 2)

.PHONY: help course test lectures answers test-all lab book bench mutants soak release exercises figures format \
	sandbox network browser slurm python
help:
	@sed -n '2,/^$$/s/^# \{0,3\}//p' Makefile

course: $(INSTALLED) sandbox network
	@python -m autograder.course

test: $(INSTALLED) sandbox network
	ruff check .
	ruff check --line-length 88 --select E501 lectures/*.ipynb  # what a page shows of a line
	ruff format --check .
	mypy
	$(PYTEST) --dist loadfile --no-loadscope-reorder -m "not ($(LONG))"
	@echo "Left to make lectures: a run of each. Left to make test-all: tests marked $(LONG)."

lectures: $(INSTALLED) network
	$(RUN) lectures

answers: $(INSTALLED) sandbox
	$(PYTEST) --dist loadfile -m answers

# Two at a time: each of these takes all cores by itself.
test-all: $(INSTALLED_FRAMEWORKS) sandbox network browser slurm
	python -m pytest -n 2 --dist loadfile -m "$(LONG)"
	$(PYTEST) --dist loadfile tests/topics/test_frameworks.py tests/topics/test_zero_beside_torch.py
	BYHAND_PORTABLE=1 $(PYTEST) --dist worksteal tests/runtime/test_launch.py tests/runtime/test_deadlocks.py
	$(RUN) lectures -p world_size 2
	@echo "Left to make test: lint, all tests but those marked $(LONG). To make lectures: lectures as they are."

lab: $(INSTALLED) sandbox
	@autograder lab

book: $(INSTALLED) network
	@python -m autograder.book.build

bench: $(INSTALLED_FOR_BENCH) sandbox network
	@set -e; for bench in tests/benchmarks/*.py; do \
	  PYTHONPATH="$(CURDIR)/tests" python $$bench; done

mutants: $(INSTALLED)
	@PYTHONPATH="$(CURDIR):$(CURDIR)/tests" python -m answers.mutants

soak: $(INSTALLED) sandbox
	@PYTHONPATH="$(CURDIR):$(CURDIR)/tests" python tests/autograder/soak.py

# From what is committed, in a copy: what earlier builds left here is in none of them.
RELEASE := $(shell sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
release: $(INSTALLED)
	@rm -rf build/release && mkdir -p build/release/source
	@git archive HEAD | tar -x -C build/release/source
	@SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) python -m build --no-isolation \
	  --outdir build/release build/release/source >build/release/build.log 2>&1 \
	  || { tail -n 20 build/release/build.log; exit 1; }
	@cd build/release && rm -rf source build.log && git -C ../.. archive --prefix=course/ HEAD lectures \
	  exercises LICENSE LICENSE-TEXT | tar -x && { [ ! -d ../book ] || cp -a ../book course/; } \
	  && python -m zipfile -c byhand-course-$(RELEASE).zip course && rm -rf course && ls -sh
	@[ -d build/book ] || echo "The archive has no book: make book, and make release again."
	@[ -z "$$(git status --porcelain)" ] || echo "What is not committed is in none of them."
	@echo "Next: git tag v$(RELEASE), push it, and attach the three files to a release of that tag."

exercises: $(INSTALLED)
	@autograder release

figures: $(INSTALLED)
	@python lectures/figures/draw.py

format: $(INSTALLED)
	ruff check --fix .
	ruff format .
	-python -m autograder.release.normalise lectures solutions

$(INSTALLED): | python
	@[ -x .venv/bin/python ] && grep -qF "$(CURDIR)/.venv/bin/python" .venv/bin/pip 2>/dev/null \
	  || "$(BASE_PYTHON)" -m venv --clear .venv
	@echo "Installing into .venv, this once: some minutes, most of them for torch."
	@echo "1 of 3: pip itself"  # Debian's own takes four times as long
	$(call pip_install,--upgrade pip)
	@echo "2 of 3: torch $(TORCH_VERSION), which brings up to 3 GB of CUDA where TORCH=cpu does not ask for less"
	$(call pip_install,-c constraints.txt torch==$(TORCH_VERSION))
	@echo "3 of 3: JupyterLab, nbgrader, and all that the tests use"
	$(call pip_install,-c constraints.txt -e '.[dev]')
	@rm -f .venv/installed-* && touch $@

$(INSTALLED_FOR_BENCH): $(INSTALLED)
	@echo "Installing accelerate and ipyparallel, which only the benchmark uses."
	$(call pip_install,-c constraints.txt -e '.[bench]')
	@touch $@

$(INSTALLED_FRAMEWORKS): $(INSTALLED)
	@echo "Installing DeepSpeed and Accelerate, which lecture 18 sets beside what the course wrote."
	$(call pip_install,-c constraints.txt -e '.[frameworks]')
	@touch $@

# $(call pip_install,what): on a terminal pip speaks for itself, and shows its bars; elsewhere what
# went wrong is the first error of many lines.
define pip_install
@if [ -t 1 ]; then python -m pip install $(1) && exit 0; echo "pip could not install the course, see above.";\
  else python -m pip install --quiet $(1) >.venv/pip.log 2>&1 && exit 0; echo "pip could not install the"\
  "course: $$(grep -m 1 -o 'ERROR: .*' .venv/pip.log || tail -n 1 .venv/pip.log)";\
  echo "All that pip said is in .venv/pip.log."; fi; echo "It needs a network and up to 8 GB of disk.";\
  $(if $(TORCH),echo "torch+$(TORCH) is not everywhere: PIP_EXTRA_INDEX_URL=... names an index that has it.";) exit 1
endef

# $(call system_package,command that succeeds when it is there,Debian package,what it is for)
define system_package
	@{ $(1); } >/dev/null 2>&1 || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
	  && echo "Installing $(2): $(3)." \
	  && export DEBIAN_FRONTEND=noninteractive \
	  && { apt-get install -qq -y $(2) || { apt-get update -qq && apt-get install -qq -y $(2); }; } \
	     >/dev/null 2>&1; } || echo "Missing: $(3). To have it: sudo apt-get install $(2)"
endef

AS_DIGITS := import sys; print("%d.%d" % sys.version_info[:2])
VERSION := $(if $(BASE_PYTHON),$(shell "$(BASE_PYTHON)" -c '$(AS_DIGITS)' 2>/dev/null))

python:
	@[ -n "$(VERSION)" ] || { echo "No Python is called $(PYTHON) here. The course needs 3.11 or\
 newer: sudo apt-get install python3 python3-venv"; exit 1; }
	@"$(BASE_PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "$(PYTHON) is Python\
 $(VERSION): the course needs 3.11 or newer. Choose one with: make course PYTHON=python3.12"; exit 1; }
	@[ -w . ] || { echo "Nothing can be written to $(CURDIR): copy the course to a folder of yours,\
 and run make there."; exit 1; }
	$(call system_package,"$(BASE_PYTHON)" -c 'import ensurepip',python$(VERSION)-venv,a Python that can make\
	 environments)
	@"$(BASE_PYTHON)" -c 'import ensurepip' 2>/dev/null || exit 1

sandbox:
	$(call system_package,command -v bwrap,bubblewrap,the sandbox that student code is graded in)

network:
	$(call system_package,PATH="$$PATH:/usr/sbin:/sbin" command -v tc,iproute2,the tools that lay a virtual\
	 network)

browser:
	$(call system_package,command -v chromium || command -v google-chrome,chromium,the browser that\
	 page tests draw in)

slurm:
	$(call system_package,PATH="$$PATH:/usr/sbin" command -v slurmctld,slurm-wlm munge,the cluster of two\
	 nodes that Slurm tests run on)

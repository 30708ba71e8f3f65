# `make` lists the targets. Everything is installed into .venv beside this file.

PYTHON ?= $(shell for p in python3 python3.11 python3.12 python3.13 python3.14 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
FRESH := build/venv
WRITERS := build/writers

.PHONY: help setup demo test writers lint format types bench docs golden constraints clean

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

setup: $(INSTALLED) ## install afterrun and the development tools into .venv

# The stamp keeps a second call from installing again; pip is new enough for dependency groups first.
$(INSTALLED): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "afterrun needs Python 3.11 or newer: make setup PYTHON=/path/to/python3" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet -c constraints.txt -e . --group dev
	@touch $@

demo: setup ## report on the sample logs into postmortem/
	$(BIN)/afterrun report sample_logs -o postmortem
	@echo "open $(CURDIR)/postmortem/index.html"

test: setup lint types ## check style, types and import rules, then run all tests
	$(BIN)/lint-imports
	$(BIN)/pytest -n 2

# An environment of its own: these libraries ask for other versions than constraints.txt has.
writers: ## write logs with the real libraries (some gigabytes) and read them back
	test -d $(WRITERS) || $(PYTHON) -m venv $(WRITERS)
	$(WRITERS)/bin/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(WRITERS)/bin/python -m pip install --quiet -e '.[writers]' --group dev
	$(WRITERS)/bin/pytest -m writers tests/writers

lint: setup ## check style and formatting
	$(BIN)/ruff check
	$(BIN)/ruff format --check

format: setup ## repair style and formatting
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

types: setup ## check types
	$(BIN)/mypy

bench: setup ## run the benchmarks, each as a ratio to a peer
	@for b in benchmarks/bench_*.py; do $(BIN)/python $$b || exit 1; done

docs: setup ## write docs/findings again from the passes
	$(BIN)/python docs/generate.py

golden: setup ## write the expected files of tests/golden again; review the difference
	$(BIN)/python -m tests.support.golden

constraints: ## resolve all dependencies afresh into constraints.txt
	$(PYTHON) -m venv --clear $(FRESH)
	$(FRESH)/bin/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(FRESH)/bin/python -m pip install --quiet . --group dev
	$(FRESH)/bin/python -m pip list --format freeze --exclude afterrun --exclude pip --exclude setuptools > constraints.txt
	rm -rf $(FRESH)

clean: ## remove everything that was built, .venv included
	rm -rf $(VENV) postmortem build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# `make demo` and `make test` do all their set-up themselves. Everything is installed into .venv, by package name.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
TORCH := torch==2.13.0 numpy
WORKERS ?= 2
# Our folder `watchdog` must never be imported under its bare name (see watchdog/__init__.py).
export PYTHONSAFEPATH := 1

.PHONY: help demo test test-all test-seed lint types layers unit bench mutants format clean

help:  ## Show this list.
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

demo: $(VENV)/.demo  ## Start a small real job in which one rank stops joining, and scan it while it hangs.
	$(BIN)/pardbg demo

test: lint types layers unit  ## Everything that must hold before a commit (under 15 minutes on 2 cores).

test-seed: $(VENV)/.test  ## The job pardbg was begun for: 40 ranks on eight nodes (4 minutes, 6 GB).
	$(BIN)/pytest tests/live/test_seed.py -m live

test-all: test bench  ## ... and the slow rest.
	$(BIN)/pytest -m "slow and not live" -n $(WORKERS)
	$(BIN)/pytest -m "slow and live" -n $(WORKERS) --dist loadgroup

lint: $(VENV)/.test  ## ruff, linter and formatter.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.test  ## mypy --strict, on the code and on the tests.
	$(BIN)/mypy

layers: $(VENV)/.test  ## The one-way flow of ARCHITECTURE.md.
	$(BIN)/lint-imports

unit: $(VENV)/.test  ## The tests.
	$(BIN)/pytest -m "not slow and not live" -n $(WORKERS)
	$(BIN)/pytest -m "live and not slow" -n $(WORKERS) --dist loadgroup  # tests/conftest.py says who stays together

bench: $(VENV)/.test  ## Speed and memory, with torchfrtrace on the same files.
	$(BIN)/pardbg bench

mutants: $(VENV)/.test  ## Break each rule of the diagnosis, and see that one of its tests fails (10 minutes and more).
	$(BIN)/pytest tests/diagnosis/test_mutants.py tests/mutation -n $(WORKERS)

format: $(VENV)/.test  ## Let ruff format the tree.
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:  ## Remove what make made.
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(VENV)/.demo: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet $(TORCH)
	$(BIN)/pip install --quiet --editable '.[demo]'
	touch $@

$(VENV)/.test: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet $(TORCH)
	$(BIN)/pip install --quiet --editable '.[demo,test]'
	$(BIN)/pip install --quiet --upgrade --target $(VENV)/grafana 'grafana-client>=5'  # apart: installed, it replaces urllib3
	touch $@ $(VENV)/.demo

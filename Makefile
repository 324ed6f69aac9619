# Everything starts from Python >= 3.11, git and make; the rest is installed here.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# A byte-code cache makes every start two to three times faster.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help up test soak check lint bench lock docs clean

help: ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

$(VENV)/locked: requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit("Openbell needs Python 3.11 or newer: make PYTHON=python3.12 ...") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@touch $@

$(VENV)/ready: $(VENV)/locked pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

up: $(VENV)/ready ## start the desk on this machine (simulated market by default)
	$(BIN)/openbell up

test: $(VENV)/ready ## run all tests
	$(BIN)/python -m pytest -n 2 --dist worksteal

soak: $(VENV)/ready ## run the long campaigns too
	OPENBELL_SOAK=1 $(BIN)/python -m pytest -n 2 --dist worksteal

lint: $(VENV)/ready ## ruff, mypy --strict, import-linter
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

check: lint test ## lint and test

docs: $(VENV)/ready ## write the generated reference pages anew
	$(BIN)/python -m openbell.cli.reference docs

bench: $(VENV)/ready ## print speed ratios, measured in an environment with run-time dependencies only
	$(PYTHON) bench/run.py

lock: ## resolve pyproject.toml into requirements.lock and requirements-run.lock
	$(PYTHON) -m venv $(VENV)-lock && $(VENV)-lock/bin/python -m pip install --quiet uv
	$(VENV)-lock/bin/uv pip compile --quiet --universal --generate-hashes --no-header --python-version 3.11 \
		pyproject.toml --all-extras --group dev -o requirements.lock
	$(VENV)-lock/bin/uv pip compile --quiet --universal --generate-hashes --no-header --python-version 3.11 \
		-c requirements.lock pyproject.toml -o requirements-run.lock

clean: ## remove environments and caches
	rm -rf $(VENV) $(VENV)-lock .bench-venv .pytest_cache .mypy_cache .ruff_cache .hypothesis

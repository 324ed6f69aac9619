# Everything starts from Python >= 3.11, git and make; the rest is installed here.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# A byte-code cache makes every start two to three times faster.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help up quick test soak check covered lint sbom advisories bench lock docs proto clean

help: ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

# Three stamps: what the desk needs to run, the desk itself, and what tests and checks need besides.
# A lock that has changed may lack packages that it had: the environment is then made anew.
$(VENV)/run: requirements-run.lock .ci/installers.lock
	@$(PYTHON) -c 'import sys; sys.exit("Openbell needs Python 3.11 or newer: make PYTHON=python3.12 ...") if sys.version_info < (3, 11, 2) else None'
	@$(PYTHON) .ci/install.py --new $(VENV) requirements-run.lock
	@touch $@

$(VENV)/ready: $(VENV)/run pyproject.toml
	@$(PYTHON) .ci/install.py $(VENV) --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/tools: $(VENV)/run requirements.lock | $(VENV)/ready
	@[ ! -e $@ ] || rm -rf $(VENV)
	@[ -e $(VENV)/ready ] || $(MAKE) --no-print-directory $(VENV)/ready
	@$(PYTHON) .ci/install.py $(VENV) requirements.lock
	@touch $@

up: $(VENV)/ready ## start the desk on this machine (simulated market by default)
	$(BIN)/openbell up

# The rooms whose tests are pure, as tests/markers.py has them.
PURE := $(addprefix tests/,market indicators signals trading strategies backtest charts)

quick: $(VENV)/tools ## run the tests of the pure rooms: one process, no server, at most a minute
	OPENBELL_QUICK=1 $(BIN)/python -m pytest -m pure $(PURE)

# Four processes on two cores: many tests wait, for a server, a vendor or another process.
test: $(VENV)/tools ## run all tests
	$(BIN)/python -m pytest -n 4 --dist worksteal

soak: $(VENV)/tools ## run the long campaigns too
	OPENBELL_SOAK=1 $(BIN)/python -m pytest -n 2 --dist worksteal

lint: $(VENV)/tools ## ruff, mypy --strict, import-linter
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

check: lint covered sbom advisories ## lint, test, measure what is covered, list the parts, look for advisories

covered: $(VENV)/tools ## run all tests and print the coverage of each room; fails if a pure room has too little
	rm -rf build/coverage && mkdir -p build/coverage
	TESTS_COVERAGE=build/coverage/all $(BIN)/python -m pytest -n 4 --dist worksteal
	$(BIN)/python -m tools.room_coverage build/coverage/all

sbom: $(VENV)/tools ## write what a desk is made of (CycloneDX) to build/
	$(BIN)/python .ci/sbom.py requirements-run.lock build/openbell.cdx.json

advisories: $(VENV)/tools ## look for known vulnerabilities of the locked packages, if the database can be reached
	$(BIN)/python .ci/advisories.py requirements-run.lock requirements.lock .ci/installers.lock

docs: $(VENV)/tools ## write the generated reference pages anew
	$(BIN)/python -m tools.reference docs
	$(BIN)/python -m tests.gateway.conformance.suite
	$(BIN)/python -m tests.gateway.attacks

proto: $(VENV)/tools ## generate the messages of the gRPC backtester anew
	$(BIN)/python -m grpc_tools.protoc -I src --python_out=src openbell/backtest/wire/backtester.proto

bench: $(VENV)/tools ## print speed ratios, measured in an environment with run-time dependencies only
	$(PYTHON) bench/run.py

lock: ## resolve pyproject.toml into requirements.lock and requirements-run.lock, the clients of the tests and the installers
	$(PYTHON) .ci/install.py --new $(VENV)-lock uv
	$(VENV)-lock/bin/uv pip compile --quiet --universal --generate-hashes --no-header --python-version 3.11 \
		pyproject.toml --all-extras --group dev -o requirements.lock
	$(VENV)-lock/bin/uv pip compile --quiet --universal --generate-hashes --no-header --python-version 3.11 \
		-c requirements.lock pyproject.toml --extra alpaca --extra ccxt --group build -o requirements-run.lock
	$(VENV)-lock/bin/uv pip compile --quiet --universal --generate-hashes --no-header --python-version 3.11 \
		tests/gateway/clients/pydantic-ai.in -o tests/gateway/clients/pydantic-ai.lock
	$(VENV)-lock/bin/uv pip compile --quiet --universal --generate-hashes --no-header --python-version 3.11 \
		.ci/installers.in -o .ci/installers.lock

clean: ## remove environments and caches
	rm -rf $(VENV) $(VENV)-lock .bench-venv .vectorbt-venv .fastmcp-venv .pytest_cache .mypy_cache .ruff_cache .hypothesis

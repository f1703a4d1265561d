# Every target runs from .venv, which it makes and keeps current by itself.
#
#   PYTHON  the interpreter to make .venv with (3.11 or newer)
#   ARGS    more arguments for serve, test and bench

PYTHON ?= python3
ARGS ?=

VENV := .venv
RUN := $(VENV)/bin/python -m
PIP := $(RUN) pip install --quiet --disable-pip-version-check --constraint constraints.txt

# The scripts of an environment hold its path, so a moved tree gets a new one; so does a tree
# whose interpreter has gone.
HERE := $(shell printf '%s' '$(CURDIR)' | cksum | cut -d ' ' -f 1)
MADE := $(VENV)/.made-$(HERE)
RUNTIME := $(VENV)/.runtime-$(HERE)
DEV := $(VENV)/.dev-$(HERE)
GONE := $(shell $(VENV)/bin/python -c '' 2>/dev/null || echo gone)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help serve test check lint format gen baseline lock bench clean gone

help: ## Say what the targets do
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' Makefile

serve: $(RUNTIME) ## Run the server with its gateway: make serve ARGS='--port 8080'
	@exec $(VENV)/bin/antiphon serve $(ARGS)

test: $(DEV) ## Run the tests: make test ARGS='tests/core -k ids'
	@$(RUN) pytest $(ARGS)

check: lint test ## Run every check there is: lint, then the tests

lint: $(DEV) ## Check format, lint and types, the schema, and that generated code is current
	@$(RUN) ruff format --quiet --check .
	@$(RUN) ruff check --quiet .
	@$(RUN) mypy --no-error-summary
	@$(RUN) tools.schema check

format: $(DEV) ## Format the code and the schema
	@$(RUN) ruff check --quiet --fix-only .
	@$(RUN) ruff format --quiet .
	@$(VENV)/bin/buf format --write proto

gen: $(DEV) ## Generate the code and the descriptor set of the schema
	@$(RUN) tools.schema generate

baseline: $(DEV) ## At a release only: record the schema as the one that must not break
	@$(RUN) tools.schema baseline

lock: ## Resolve the newest versions of every dependency into constraints.txt
	@PYTHON='$(PYTHON)' sh tools/venv.sh $(VENV)-lock
	@$(VENV)-lock/bin/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@{ echo "# Versions that were tested together. Written by \`make lock\`."; \
	   $(VENV)-lock/bin/python -m pip freeze --all --exclude pip --exclude-editable; \
	 } > constraints.txt
	@rm -rf $(VENV)-lock

bench: $(DEV) ## Run the benchmarks
	@$(RUN) tests.bench $(ARGS)

clean: ## Remove the environment, the caches and what was built
	@rm -rf $(VENV) $(VENV)-lock .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(MADE): tools/venv.sh $(GONE)
	@echo 'Making $(VENV), once'
	@PYTHON='$(PYTHON)' sh tools/venv.sh $(VENV)
	@touch $@

$(RUNTIME): $(MADE) pyproject.toml constraints.txt
	@echo 'Installing the server into $(VENV)'
	@$(PIP) -e .
	@touch $@

$(DEV): $(MADE) pyproject.toml constraints.txt
	@echo 'Installing the server and its development tools into $(VENV)'
	@$(PIP) -e '.[dev]'
	@touch $(RUNTIME) $@

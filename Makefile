# The same commands for people and CI. Python 3.10 to 3.13.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
ARGS ?=
# More than two cores have: browsers wait more than they work.
WORKERS ?= 3
# -rs: says why tests are skipped (no Ray, no GPU, no Chromium).
PYTEST = PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -rs -n $(WORKERS) --dist loadfile --no-loadscope-reorder
PIP = $(BIN)/python -m pip install --disable-pip-version-check

# Where Linux has no NVIDIA GPU, PyTorch comes in its build for CPUs: 0.2 GB instead of 2.7.
# TORCH_INDEX= takes the package registry's in any case, another address another build.
TORCH_INDEX ?= $(if $(filter Linux,$(shell uname -s)),$(if $(wildcard /dev/nvidia0 /dev/dxg),,https://download.pytorch.org/whl/cpu))

.PHONY: install run test test-long check bench lock clean

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(None if (3, 10) <= sys.version_info[:2] <= (3, 13) else "Timbre needs Python 3.10 to 3.13, and $(PYTHON) is %d.%d: make PYTHON=python3.12" % sys.version_info[:2])'
	$(PYTHON) -m venv $(VENV)

# $(call torch,a requirement)
define torch
	@$(if $(TORCH_INDEX),$(PIP) --no-deps --retries 1 --timeout 20 --index-url $(TORCH_INDEX) "$(1)" ||) \
	{ echo "PyTorch comes from the package registry; on Linux that is its build for GPUs, 2.7 GB."; \
	$(PIP) "$(1)"; }
endef

$(VENV)/.run: requirements.txt | $(BIN)/python
	@echo "Installing into $(VENV): 0.43 GB are downloaded without an NVIDIA GPU, 3 GB with one, once."
	$(call torch,$(shell sed -n 's/^\(torch[^ ]*\).*/\1/p' requirements.txt))
	$(PIP) -r requirements.txt
	touch $@

$(VENV)/.dev: requirements-dev.lock | $(BIN)/python
	$(call torch,$(shell sed -n 's/^# \(torch[^ ]*\).*/\1/p' requirements-dev.lock))
	$(PIP) --require-hashes -r requirements-dev.lock
	touch $@ $(VENV)/.run

install: $(VENV)/.run

run: install
	$(BIN)/python app.py $(ARGS)

test: $(VENV)/.dev
	$(PYTEST) -m "not slow" $(ARGS)

test-long: $(VENV)/.dev
	$(PYTEST) $(ARGS)

check: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	@if command -v npm >/dev/null; then npm ci --silent --no-audit --no-fund && npm run --silent lint && npm run --silent types; \
	else echo "The page's JavaScript is not checked: no npm here."; fi
	@measured=$$(sed -n 's/^GPU tests and cells: commit \([0-9a-f]*\).*/\1/p' bench/RESULTS.md); \
	echo "Changes in engine/worker since the GPU was last measured: $$(git rev-list --count $$measured..HEAD -- engine/worker)"

bench: install
	$(BIN)/python -m bench $(ARGS)

# Newest versions within the ranges of the requirements: see .ci/lock.
lock: $(BIN)/python
	$(PIP) uv
	UV=$(BIN)/uv .ci/lock $(ARGS)

clean:
	rm -rf $(VENV) node_modules .pytest_cache .mypy_cache .ruff_cache .hypothesis

# The same commands for people and CI. Python 3.10 to 3.13.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
ARGS ?=
# On two cores three workers take 11 minutes, two 13: browsers wait more than they work.
WORKERS ?= 3
# -rs: says why tests are skipped (no Ray, no GPU, no Chromium).
PYTEST = $(BIN)/python -m pytest -rs -n $(WORKERS) --dist loadfile --no-loadscope-reorder

.PHONY: install run test test-long check bench clean

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.run: requirements.txt | $(BIN)/python
	$(BIN)/python -m pip install -q --disable-pip-version-check -r requirements.txt
	touch $@

$(VENV)/.dev: requirements.txt requirements-dev.txt | $(BIN)/python
	$(BIN)/python -m pip install -q --disable-pip-version-check -r requirements-dev.txt
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

bench: install
	$(BIN)/python -m bench $(ARGS)

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis

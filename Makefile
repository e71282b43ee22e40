# Every target sets up what it needs in .venv; a second call finds it there.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# Data sets that are not part of the repository; tests that need them are skipped without them.
ifneq ($(wildcard ../shared/data),)
export RAG_ASSETS_DATA ?= $(abspath ../shared/data)
endif
DEMO := $(VENV)/demo

.PHONY: demo test lint format docs ui bench clean

demo: $(READY)
	@rm -rf $(DEMO) && $(BIN)/rag-assets init --example support_rag $(DEMO)
	@cd $(DEMO) && $(abspath $(BIN))/rag-assets run; \
	  status=$$?; if [ $$status -ne 3 ]; then exit $$status; fi; \
	  echo; echo "Exit code 3 is the example's answer: 13 cases cannot settle two of its rules."

# Tests that need Chromium are skipped where there is none; .ci/chromium installs it. Many wait for
# the processes of the Dagster UI, so that three workers suit two cores.
test: $(READY)
	$(BIN)/python -m pytest -n 3 --dist loadfile

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(READY)
	$(BIN)/python -m docs

ui: $(READY)
	@test -d $(DEMO) || $(BIN)/rag-assets init --example support_rag $(DEMO)
	@cd $(DEMO) && $(abspath $(BIN))/rag-assets ui

bench: $(READY)
	$(BIN)/python -m pip install --quiet --editable '.[bench]'
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) dist build

$(READY): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("rag-assets needs Python 3.11 or newer: make PYTHON=python3.11") if sys.version_info < (3, 11) else None'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	@touch $@

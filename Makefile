# make demo   set everything up and answer a prompt with the default model
# make serve  set everything up and serve the default model at http://127.0.0.1:8000
# make test   set everything up and run the default tests
# make check  formatting, lint, types, import edges, sizes
# make sanitize  build the native module under AddressSanitizer (SANITIZER=thread: ThreadSanitizer), run its tests
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SANITIZER ?= address
MODEL := smollm2-135m-instruct
NATIVE_SOURCES := $(shell find native -type f 2>/dev/null)

.PHONY: demo serve test test-slow sanitize check format bench-scheduler install-size clean

$(BIN)/python:
	@$(PYTHON) tools/check_toolchain.py
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

# The build back end goes into the environment once, so that native rebuilds need no isolated one.
$(VENV)/.build-requires: $(BIN)/python pyproject.toml
	$(BIN)/python tools/list_requirements.py build | xargs $(BIN)/python -m pip install --quiet
	@touch $@

$(VENV)/.installed: $(VENV)/.build-requires $(NATIVE_SOURCES)
	@$(PYTHON) tools/check_toolchain.py
	@echo "building the native kernels and installing octavo: a minute or two"
	$(BIN)/python -m pip install --quiet --no-build-isolation --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.installed
	$(BIN)/python tools/list_requirements.py dev | xargs $(BIN)/python -m pip install --quiet
	@touch $@

demo: $(VENV)/.installed
	$(BIN)/octavo pull $(MODEL)
	$(BIN)/octavo generate --model $(MODEL) "What is the capital of France?"

serve: $(VENV)/.installed
	$(BIN)/octavo pull $(MODEL)
	$(BIN)/octavo serve $(MODEL) $(SERVE_ARGS)

test: $(VENV)/.dev
	$(BIN)/octavo pull $(MODEL)
	$(BIN)/python -m pytest -m "not slow" $(PYTEST_ARGS)

test-slow: $(VENV)/.dev
	$(BIN)/octavo pull $(MODEL)
	$(BIN)/octavo pull qwen2.5-coder-0.5b-instruct
	$(BIN)/octavo pull gemma-3-270m
	$(BIN)/python -m pytest -m slow --timeout 1800 $(PYTEST_ARGS)

sanitize: $(VENV)/.dev
	$(BIN)/python tools/sanitize.py $(SANITIZER) $(PYTEST_ARGS)

check: $(VENV)/.dev
	$(BIN)/ruff format --check src tests tools examples
	$(BIN)/ruff check src tests tools examples
	$(BIN)/mypy
	$(BIN)/python tools/lint_imports.py
	$(BIN)/python tools/lint_size.py
	find native -name '*.cpp' -o -name '*.h' | xargs $(BIN)/clang-format --dry-run --Werror

format: $(VENV)/.dev
	$(BIN)/ruff format src tests tools examples
	$(BIN)/ruff check --fix src tests tools examples
	find native -name '*.cpp' -o -name '*.h' | xargs $(BIN)/clang-format -i

bench-scheduler: $(VENV)/.installed
	$(BIN)/python -m octavo.bench.scheduler

install-size: $(BIN)/python
	$(PYTHON) tools/check_install_size.py

clean:
	rm -rf $(VENV) build

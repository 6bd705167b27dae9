# The menu. `make` alone lists it; docs/decisions/ says why this is a Makefile.

PYTHON ?= python3
CARGO ?= cargo

VENV := .venv
BIN := $(VENV)/bin
OUT := target/demo

# One answer on every machine: pip and cargo take the committed versions, and maturin sees this
# environment alone, whatever else is active.
export PIP_CONSTRAINT := $(abspath constraints.txt)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export VIRTUAL_ENV := $(abspath $(VENV))
export PYO3_PYTHON := $(abspath $(BIN)/python)
unexport CONDA_PREFIX PYTHONHOME PYTHONPATH

NATIVE := Cargo.toml Cargo.lock pyproject.toml $(shell find crates -name '*.rs' -o -name Cargo.toml)

.DEFAULT_GOAL := help
.PHONY: help demo test test-live lint fmt bench fuzz docs wheel clean

help: ## list what there is to do
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/.built ## build, and put the example capture's datagrams back together
	@mkdir -p $(OUT)
	$(BIN)/fragtrack reassemble examples/fragments.pcapng -o $(OUT)/whole.pcapng

test: $(VENV)/.dev $(VENV)/.built ## build, and run every test
	$(CARGO) test --locked --workspace --exclude fragtrack-py
	$(BIN)/python -m pytest

test-live: $(VENV)/.dev $(VENV)/.built ## as root: random flows through the running kernel and both backends, a minute
	$(BIN)/python -m pytest tests/live/test_tracking.py

lint: $(VENV)/.dev $(VENV)/.built ## check format, lints, types, stub, layers, stray paths
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict python/fragtrack
	$(BIN)/lint-imports --no-logo
	$(BIN)/python -m mypy.stubtest fragtrack._core
	@$(call no-machine-paths)

fmt: $(VENV)/.dev ## format, and mend what the linters can mend
	$(CARGO) fmt --all
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.dev $(VENV)/.built ## measure every workload beside its floors
	$(BIN)/python benchmarks/run.py

fuzz: $(VENV)/.dev $(VENV)/.built ## throw damaged captures and packets at both backends, minutes
	PATH="$(abspath $(BIN)):$$PATH" fuzz/run

docs: $(VENV)/.docs $(VENV)/.built ## build the documentation into docs/_build/html
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html

wheel: $(VENV)/.base ## build the wheel for this platform into dist/
	$(BIN)/maturin build --release --locked --strip --out dist

clean: ## remove everything that make made
	rm -rf $(VENV) target dist docs/_build fuzz/target python/fragtrack/_core*.so
	rm -rf .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# --- what stands ready in .venv: a stamp is as new as what it was made from -------------------

$(VENV)/.base: constraints.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "fragtrack needs Python 3.11 or newer: make PYTHON=python3.12" >&2; exit 1; }
	@command -v $(CARGO) >/dev/null \
		|| { echo "fragtrack needs a Rust toolchain (rustc and cargo) to build" >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --group build
	@touch $@

$(VENV)/.dev: $(VENV)/.base
	$(BIN)/python -m pip install --quiet --group test --group lint
	@touch $@

$(VENV)/.docs: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --group docs
	@touch $@

$(VENV)/.built: $(VENV)/.base $(NATIVE)
	$(BIN)/maturin develop --release --locked
	@touch $@

# No file may hold a path of the machine it was written on: this checkout, what lies beside it,
# the home folder. Files that git ignores do not count.
define no-machine-paths
	git grep --untracked --line-number -I --fixed-strings -e '$(CURDIR)/' \
		-e '$(abspath ../shared)/' $(if $(filter-out /,$(HOME)),-e '$(HOME)/') -- . ; \
	case $$? in \
		1) ;; \
		0) echo "the lines above hold paths of this machine" >&2; exit 1 ;; \
		*) echo "stray paths were not looked for: not a git checkout" >&2 ;; \
	esac
endef

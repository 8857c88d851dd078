# `make help` lists the targets. Everything is set up in .venv; nothing outside the checkout is touched but pip's and the simulator's
# caches and, for root on Debian, the system packages that compile kernels (TRITON=no leaves them out).

PYTHON  ?= python3
VENV    := .venv
BIN     := $(VENV)/bin
READY   := $(VENV)/.ready
RELEASE ?=
WHEELS  ?=
TRITON  ?=
JOBS    ?= auto
ARGS    ?=

.DEFAULT_GOAL := help
.PHONY: help setup conformance reference test lint compat bench opcoverage faults stress sanitize clean clean-env

help: ## list the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo
	@echo "  RELEASE=2.13.0   a release of releases.toml     JOBS=2   parallel processes (default: auto)"
	@echo "  ARGS='--rule import/lazy'   more arguments for pytest     PYTHON=python3.11   the interpreter for a new .venv"
	@echo "  TRITON=no   leave out triton-ascend and, for root on Debian, the system packages (about 650 MB) that compile its kernels"
	@echo "  WHEELS=DIR   a directory with a CPU build of torch of your own     VENV=DIR   another environment than .venv"

ifneq ($(words $(VENV)),1)
$(error VENV="$(VENV)": make takes no path with a space. Name another directory: make VENV=.venv-other)
endif
ifeq ($(filter yes no,$(or $(TRITON),yes)),)
$(error TRITON="$(TRITON)" is neither yes nor no)
endif

$(READY): pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "error: there is no $(PYTHON). Name another interpreter: make PYTHON=python3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(None if (3, 10) <= v < (3, 14) else "error: Python 3.10 to 3.13 is needed, $(PYTHON) is %d.%d. Name another one: make PYTHON=python3.11" % v)'
	@test -x $(BIN)/python || { echo "making $(VENV)"; $(PYTHON) -m venv $(VENV); }
	@echo "installing the project and its tools into $(VENV)"
	@$(BIN)/python -m pip install -qq --disable-pip-version-check 'pip>=25.1' && \
	 $(BIN)/python -m pip install -qq --disable-pip-version-check --editable . --group dev --group runtime || \
	 { echo "error: pip could not install them; its messages stand above. Remedy: see that it reaches a package index (its settings: $(BIN)/python -m pip config list; behind a proxy: HTTPS_PROXY), then run make again" >&2; exit 1; }
	@touch $@

setup: $(READY) ## make .venv with torch (CPU), torch_npu, triton-ascend and the tools
	@$(BIN)/python tools/environment.py $(if $(RELEASE),--release $(RELEASE)) $(if $(WHEELS),--wheels $(WHEELS)) $(if $(filter no,$(TRITON)),--no-triton)

conformance: setup ## judge the installed torch_npu; the report goes to build/conformance
	$(BIN)/python -m pytest cases -n $(JOBS) --forked $(ARGS)

reference: setup ## judge torch_npu_lazy on top of the installed torch_npu; the report goes to build/reference
	$(BIN)/python -m pytest cases -n $(JOBS) --subject reference --report-dir build/reference $(ARGS)

test: setup lint ## ruff, pyright, every test of the project, the reference implementation, the oldest Python and pytests
	$(BIN)/python -m pytest tests -n $(JOBS) $(ARGS)
	@# What the wheel alone is known to fail; `make reference` judges the rest as well.
	$(BIN)/python -m pytest cases -n $(JOBS) --subject reference --report-dir build/reference --known stock
	$(BIN)/python -m nox --tags ends

lint: setup ## ruff and pyright
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

compat: $(READY) ## the judge under Python 3.10-3.13 and pytest 9.0-9.2, with and without pytest-forked and pytest-timeout
	$(BIN)/python -m nox --tags compat

bench: setup ## measure: what the harness, the reference implementation and the simulator cost
	$(BIN)/python bench/suite_cost.py
	$(BIN)/python bench/import_cost.py
	$(BIN)/python bench/lazy_calls.py
	$(BIN)/python bench/compile_cost.py
	$(BIN)/python bench/op_cost.py $(ARGS)

opcoverage: setup ## run PyTorch's operator database on the simulator against the CPU; writes docs/opcoverage.md
	$(BIN)/python tools/simnpu/opcoverage.py $(ARGS)

faults: setup ## make every call to the simulated runtime fail in turn; writes docs/faults.md
	$(BIN)/python tools/simnpu/faults.py $(ARGS)

fuzz: setup ## what the harness reads, 10,000 times damaged, and a run's end by every signal at 200 moments
	FUZZ_EXAMPLES=10000 ENDS_TRIES=20 $(BIN)/python -m pytest tests/harness/test_fuzz.py tests/harness/test_ends.py -n $(JOBS) $(ARGS)

stress: setup ## use the simulator for 10 minutes from many threads; fails for an error or growth
	$(BIN)/python tools/simnpu/stress.py $(ARGS)

sanitize: setup ## the simulator's native tests under address, undefined-behaviour and thread sanitizers
	$(BIN)/python tools/simnpu/sanitize.py $(ARGS)

clean: ## remove what runs have written
	rm -rf build .pytest_cache .ruff_cache .nox

clean-env: clean ## remove the environment too
	rm -rf $(VENV)

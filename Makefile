# The front door. Every target is a line or two that calls the same tools CI calls.
PYTHON ?= python3
VENV ?= .venv
CONFIG ?= configs/pairs/smollm2-135m-cpu.yaml
PROMPT ?= Why is the sky blue?
DEMO_CONFIG := configs/pairs/smollm2-135m-cpu.yaml
BIN := $(VENV)/bin
TANDEM := $(BIN)/tandem
INSTALLED := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help setup demo build-engines plan serve generate validate report bench-peers bench-engine lint format test test-unit schema errors clean

help: ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-15s %s\n", $$1, $$2}'

setup: $(INSTALLED) ## Make .venv with pinned dependencies

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[openvino,serve,dev]'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --no-deps aiconfigurator-core
	@touch $@

demo: $(INSTALLED) ## Make the demo checkpoints (93 MB download, once)
	$(TANDEM) demo fetch

build-engines: $(INSTALLED) $(if $(filter $(DEMO_CONFIG),$(CONFIG)),demo) ## Build, package, validate and report the pair of CONFIG
	$(TANDEM) run $(CONFIG)

plan: $(INSTALLED) ## Check the pair and show what would be built
	$(TANDEM) plan $(CONFIG)

serve: $(INSTALLED) ## Serve the packaged repository until Ctrl-C
	$(TANDEM) serve $(CONFIG)

generate: $(INSTALLED) ## Ask the running server: make generate PROMPT="..."
	$(TANDEM) generate "$(PROMPT)" --stats

validate: $(INSTALLED) ## Judge the packaged repository again
	$(TANDEM) validate $(CONFIG)

report: $(INSTALLED) ## Print the last report
	$(TANDEM) report $(CONFIG)

bench-peers: $(INSTALLED) $(if $(filter $(DEMO_CONFIG),$(CONFIG)),demo) ## Install the engines to compare with, each in its own environment
	$(BIN)/python benchmarks/peers/install.py $(CONFIG)

bench-engine: $(INSTALLED) ## Measure the built engine against them, about 20 minutes
	$(TANDEM) bench engine $(CONFIG) --output docs/benchmarks.md

lint: $(INSTALLED) ## Ruff, mypy, import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(INSTALLED) ## Format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

test: demo ## All tests: unit, and the real server with the real model
	$(BIN)/pytest

test-unit: $(INSTALLED) ## Tests that need no server
	$(BIN)/pytest tests/unit

schema: $(INSTALLED) ## Refresh configs/schema.json
	$(TANDEM) schema > configs/schema.json

errors: $(INSTALLED) ## Refresh docs/errors.md
	$(TANDEM) explain --markdown > docs/errors.md

clean: ## Remove what was built; checkpoints and .venv stay
	rm -rf build

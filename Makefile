# What each target runs, and in which environment, is in environments.toml; all set up what they need by themselves.
PYTHON ?= python3
RUN := $(PYTHON) scripts/environments.py

.PHONY: help setup demo lint test test-full docs bench soak clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' Makefile | sed 's/:.*## /\t/' | expand -t 12

setup: ## a virtual environment in .venv with the package and what tests need
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "gpcert needs Python 3.11 or newer: make PYTHON=python3.11")'
	@$(RUN) setup

demo: setup ## train on shipped data, certify it, leave out/demo/index.html
	@$(RUN) demo

lint: setup ## ruff, mypy, import-linter
	@$(RUN) lint

test: setup ## lint, types, layers, and every test that is not heavy
	@$(RUN) lint test

test-full: setup ## heavier tests: documentation, GPy, notebooks, Chromium, lowest versions, clusters, torch
	@$(RUN) docs test-full

docs: setup ## the site, built strictly into site/
	@$(RUN) docs

bench: setup ## every benchmark, results in benchmarks/results
	@$(RUN) bench

soak: setup ## 30,000 random queries of every question judged in ball arithmetic, then every test with fresh seeds
	@$(RUN) soak

clean: ## remove what the targets made
	rm -rf .venv .venv-* build dist out site benchmarks/results/*.json
	rm -rf .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis

# Every target sets up what it needs by itself. Two of them are all a newcomer needs: make demo, make test.
PYTHON ?= python3

VENV := .venv
BIN := $(VENV)/bin
LOWEST := .venv-numpy126
CHECKER := .venv-checker
TORCH := .venv-gpytorch
GPFLOW := .venv-gpflow
PEERS := .venv-peers

# One BLAS thread: repeats are identical bit for bit, and two test processes do not fight for two cores.
export OMP_NUM_THREADS := 1
export OPENBLAS_NUM_THREADS := 1
export MKL_NUM_THREADS := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# mkdocs-material advertises on standard error, which is noise in a strict build.
export NO_MKDOCS_2_WARNING := 1

.PHONY: help setup demo curve pages test test-full test-checker test-lowest test-clusters test-torch test-adapters lint bench bench-peers docs wheel wheel-checker soak soak-gpu clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' Makefile | sed 's/:.*## /\t/' | expand -t 14

setup: $(VENV)/.ready ## a virtual environment in .venv with the package and what tests need

demo: $(VENV)/.ready ## train on shipped data, certify it, leave out/demo/index.html
	$(BIN)/gpcert demo --output out/demo

curve: $(VENV)/.ready ## certified accuracy of 984 digits over radii: docs/images/accuracy.png, half a minute
	$(BIN)/python benchmarks/curve.py

pages: $(VENV)/.ready-full $(TORCH)/.ready $(GPFLOW)/.ready ## run what documents and notebooks show, write its output under it
	$(BIN)/python scripts/pages.py
	$(TORCH)/bin/python scripts/pages.py examples/gpytorch.ipynb
	TF_CPP_MIN_LOG_LEVEL=3 $(GPFLOW)/bin/python scripts/pages.py docs/tutorials/gpflow.md

test: lint test-checker ## lint, types, layers, and every test that is not heavy
	$(BIN)/python -m pytest -n 2 --durations=25 -m "not full"

test-full: $(VENV)/.ready-full $(CHECKER)/.ready docs test-lowest test-clusters test-torch ## heavier tests: GPy parity, the paper in quick, notebooks, the report in Chromium, docs, numpy 1.26, clusters
	$(BIN)/python -m pytest -n 2 --durations=15 -m full
	cd checker && ../$(CHECKER)/bin/python -m pytest -n 2 -m full

test-checker: $(CHECKER)/.ready ## the checker's own tests, in an environment without gpcert
	cd checker && ../$(CHECKER)/bin/python -m pytest -m "not full"

test-clusters: $(VENV)/.ready-full ## batches on Dask and Ray themselves, two workers each, some of them killed
	PYTHONPATH=tests $(BIN)/python -m pytest -W ignore tests/foreign/test_clusters.py

test-torch: $(TORCH)/.ready ## the engine on torch's CPU: what a GPU runs; the GPyTorch notebook
	$(TORCH)/bin/python -m pytest -W ignore tests/foreign/test_torch.py tests/foreign/test_notebook.py

test-lowest: $(LOWEST)/.ready ## the tests on the lowest versions pyproject.toml admits
	GPCERT_THIN=4 $(LOWEST)/bin/python -m pytest -n 2 -m "not full"

test-adapters: $(VENV)/.ready-full $(TORCH)/.ready $(GPFLOW)/.ready ## against scikit-learn, GPy, GPyTorch and GPflow themselves
	$(BIN)/python -m pytest -m "full or not full" tests/adapters/test_sklearn_adapter.py tests/adapters/test_gpy_adapter.py
	$(TORCH)/bin/python -m pytest -W ignore tests/foreign/test_gpytorch.py tests/foreign/test_notebook.py
	TF_CPP_MIN_LOG_LEVEL=3 $(GPFLOW)/bin/python -m pytest -W ignore tests/foreign/test_gpflow.py tests/foreign/test_gpflow_page.py

lint: $(VENV)/.ready ## ruff, mypy, import-linter
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

bench: $(VENV)/.ready ## every benchmark, results in benchmarks/results
	$(BIN)/python benchmarks/run.py

bench-peers: $(PEERS)/.ready ## ours beside the published method, SCIP and scipy's global optimisers
	$(PEERS)/bin/python benchmarks/run.py peers

docs: $(VENV)/.ready ## the site, built strictly into site/
	$(BIN)/mkdocs build --strict --quiet

wheel: $(VENV)/.ready ## the wheel, in dist/
	$(BIN)/python -m hatchling build -t wheel

wheel-checker: $(VENV)/.ready ## the wheel of the independent checker, in checker/dist/
	cd checker && ../$(BIN)/python -m hatchling build -t wheel

soak: $(VENV)/.ready ## 30,000 random queries of every question judged in ball arithmetic, then every test with fresh seeds
	$(BIN)/python scripts/soak.py
	GPCERT_SOAK=10 $(BIN)/python -m pytest -n 2 -m "full or not full" --hypothesis-seed=$$(date +%s)

soak-gpu: ## on a machine with a GPU and torch: is it trusted, rates, 1,000,000 verdicts and more ranges checked
	PYTHONPATH=src $(PYTHON) scripts/engine_device.py --device cuda --verdicts 262144 --ranges 65536 --rounds 48 --repeat 1

clean: ## remove what the targets made
	rm -rf $(VENV) $(LOWEST) $(CHECKER) $(TORCH) $(GPFLOW) $(PEERS) checker/dist build dist out site benchmarks/results/*.json
	rm -rf .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis

$(VENV)/.ready: pyproject.toml experiments/pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "gpcert needs Python 3.11 or newer: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[dev]' --editable ./experiments
	touch $@

$(VENV)/.ready-full: $(VENV)/.ready
	$(BIN)/python -m pip install --quiet --editable '.[dev,gpy,dask,ray,notebooks]' --editable './experiments[reproduce]'
	touch $@

# No gpcert and no numpy in it: the checker must need neither.
$(CHECKER)/.ready: checker/pyproject.toml
	$(PYTHON) -m venv $(CHECKER)
	$(CHECKER)/bin/python -m pip install --quiet --editable './checker[test]'
	touch $@

$(LOWEST)/.ready: pyproject.toml scripts/lowest_versions.py
	$(PYTHON) -m venv $(LOWEST)
	$(PYTHON) scripts/lowest_versions.py > $(LOWEST)/requirements.txt
	$(LOWEST)/bin/python -m pip install --quiet --requirement $(LOWEST)/requirements.txt --editable . --editable ./experiments
	touch $@

# torch by version: plain torch brings gigabytes of CUDA.
$(TORCH)/.ready: pyproject.toml
	$(PYTHON) -m venv $(TORCH)
	$(TORCH)/bin/python -m pip install --quiet torch==2.13.0
	$(TORCH)/bin/python -m pip install --quiet --editable '.[plots,gpytorch,torch,notebooks]' pytest hypothesis
	touch $@

$(GPFLOW)/.ready: pyproject.toml
	$(PYTHON) -m venv $(GPFLOW)
	$(GPFLOW)/bin/python -m pip install --quiet --editable '.[plots,gpflow]' pytest hypothesis
	touch $@

$(PEERS)/.ready: pyproject.toml
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet --editable . --editable ./experiments pyscipopt
	touch $@

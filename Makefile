# make demo              the default: everything on artificial languages, ends with the page; no download, no GPU
# make plan              what the papers need: jobs, time, disk, downloads, licences; PLAN_ARGS=--help lists its options
# make study             another model in mBERT's place: MODEL=e5-small, a folder or owner/name (docs/use/study.md)
# make rehearsal         the papers at full size with invented data and models and cut trainings: what the real run takes
# make paper             the papers at full scale on this machine; TARGETS=anc for one study
# make slurm             the same on a cluster; RUN=e5-small: the study of that model
# make report            the page of a run as far as it has come, and the overview of all runs: RUN=paper
# make publish           page, tables, figures and verdicts in one small folder: RUN=e5-small TO=folder
# make mirror            a mirror for make study from a folder of samples: FROM=folder TO=folder
# make test              linters and all tests
# make docs              the documents as a site, offline: site/index.html
# make lint              linters only
# make bench             measure the workflow against its peers
# make clean             delete the results of the demo; of another run, after a question: RUN=paper
# make help              this list

PYTHON ?= python3
VENV := .venv
# For a torch built for CPUs only, or for one CUDA version: make demo PIP_ARGS="--extra-index-url <address>"
PIP_ARGS ?=
TARGETS ?= all
RUN ?= demo
MODEL ?= e5-small
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)

.PHONY: demo plan study rehearsal paper slurm report publish mirror docs test \
	lint bench clean help environment dev-environment
.DEFAULT_GOAL := demo

# Prints the comment at the head of this file.
help:
	@awk '!/^#/ { exit } { sub(/^# /, ""); print }' $(firstword $(MAKEFILE_LIST))

# Snakemake with a progress line (docs/use/run.md): it finds the logger on the path.
RUNNER := snakemake --logger crossalign
demo study rehearsal paper slurm: export PYTHONPATH := $(CURDIR)/scripts/logger$(addprefix :,$(PYTHONPATH))

# make demo TARGETS=anc DEMO_ARGS="--cores 1"
demo: environment
	@$(RUNNER) --profile profiles/demo $(DEMO_ARGS) -- $(TARGETS)

# One thread per process: two one-thread processes beat one two-thread process.
test: export OMP_NUM_THREADS := 1
test: dev-environment lint
	pytest -n auto --dist loadfile --ignore tests/slurm
	pytest -n 2 --dist loadfile tests/slurm # two at a time, as they mostly wait; SLURM gives a job few seconds to end

# make plan TARGETS=adjust PLAN_ARGS="--hardware v100 --gpus 4"; the demo's: make plan CONFIGS=config/demo.yaml
plan: environment
	python scripts/plan.py $(CONFIGS) --targets $(TARGETS) $(PLAN_ARGS)

# First one job of each kind, each alone on the GPU to be measured, then the others, which share it.
# REHEARSAL_ARGS=--tiny tries the layouts on a laptop; CONFIGS=file changes the run, such as its items or
# rehearsal.max_parameters.
REHEARSED = config/rehearsal.yaml $(CONFIGS) results/rehearsal/mirror.yaml

rehearsal: environment
	@python tools/make_rehearsal.py config/rehearsal.yaml $(CONFIGS) --out results/rehearsal/mirror $(REHEARSAL_ARGS)
	@kinds=$$(python scripts/plan.py $(REHEARSED) --targets $(TARGETS) --kinds) && { [ -z "$$kinds" ] || \
		$(RUNNER) --profile profiles/gpu --resources gpu=1 transfers=4 --configfile $(REHEARSED) -- $$kinds; }
	@$(RUNNER) --profile profiles/gpu --configfile $(REHEARSED) -- $(TARGETS)

paper: environment
	@$(RUNNER) --profile profiles/gpu -- $(TARGETS)

# It prints the files that have all settings of the runs: results/<model>/models.yaml
RUN_NAMED := $(filter-out file,$(origin RUN))
RESOLVE = python scripts/resolve_models.py $(MODEL) $(if $(CONFIGS),--configs $(CONFIGS)) $(if $(RUN_NAMED),--run $(RUN)) \
	$(if $(LANGUAGES),--languages $(LANGUAGES)) $(if $(SEEDS),--seeds $(SEEDS)) $(if $(MIRROR),--mirror $(MIRROR))

study: environment
	@files=$$($(RESOLVE)) && for file in $$files; do \
		$(RUNNER) --profile profiles/study --configfile "$$file" $(STUDY_ARGS) -- $(TARGETS) || exit; done
	@python scripts/make_overview.py

mirror: environment
	python tools/make_mirror.py $(or $(FROM),$(error FROM=samples is needed)) --out $(or $(TO),results/mirror) --config config/study.yaml $(CONFIGS)

# make slurm RUN=e5-small: the study of that model, with the options of make study; else the papers
STUDIED := $(or $(if $(filter-out file,$(origin MODEL)),$(MODEL)),$(if $(RUN_NAMED),$(filter-out paper,$(RUN))))
slurm: MODEL := $(STUDIED)
slurm: environment
	@file=$(if $(STUDIED),$$($(RESOLVE))) && $(RUNNER) --profile profiles/slurm $${file:+--configfile "$$file"} -- $(TARGETS)

OF_RUN = --config results/$(RUN)/config.json --results results/$(RUN)

report: environment
	python scripts/gather_results.py $(OF_RUN)
	python scripts/make_findings.py $(OF_RUN)
	python scripts/make_verdicts.py $(OF_RUN)
	python scripts/make_overview.py
	python scripts/make_report.py $(OF_RUN) --out results/$(RUN)/report/index.html

publish: environment
	python tools/publish_run.py --results results/$(RUN) --out $(or $(TO),$(error TO=folder is needed))

# Strict: a dead link or anchor fails.
docs: export NO_MKDOCS_2_WARNING := 1
docs: dev-environment
	mkdocs build --quiet
	@echo "site/index.html opens from disk"

bench: dev-environment
	python benchmarks/plan.py
	python benchmarks/aligner.py

lint: dev-environment
	ruff check .
	ruff format --check .
	snakefmt --check Snakefile rules
	PYTHONPATH=scripts lint-imports --no-cache
	snakemake --lint --profile profiles/demo

clean:
	@$(PYTHON) scripts/clean.py --run '$(RUN)'

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

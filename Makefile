# make demo              the default: everything on artificial languages, ends with the page; no download, no GPU
# make plan              what the papers need: jobs, time, disk, downloads, licences; PLAN_ARGS=--help lists its options
# make study             your models: MODEL="folder owner/name"; also RUN, LANGUAGES, SEEDS, MIRROR (docs/use/study.md)
# make small             real languages, small models pretrained here, one GPU; MIRROR=folder reads data from a mirror
# make rehearsal         the papers at full size with invented data and models and cut trainings: what the real run takes
# make paper             the papers at full scale on this machine; TARGETS=anc for one study
# make slurm             the same on a cluster
# make report            the page of a run as far as it has come: RUN=paper
# make publish           page, tables, figures and verdicts in one small folder: RUN=small TO=folder
# make pack              code, packages and data for a machine without a network: TO=folder PACK_ARGS=--help
# make snakemake-report  Snakemake's own report of the demo
# make small-send        what the small run still needs for TARGETS, to be carried to another machine: TO=folder
# make small-receive     there and back again: FROM=folder
# make small-return      what that machine has made since: TO=folder
# make small-mirror      a mirror for make small from a folder of samples: FROM=folder
# make demo-models       pretrain the demo's models again, on a GPU or the CPU
# make test              linters and all tests
# make docs              the documents as a site, offline: site/index.html
# make test-slow         also the tests that take many minutes
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
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)

.PHONY: demo plan study small rehearsal paper slurm report publish pack snakemake-report small-mirror small-send small-receive \
	small-return demo-models docs test test-slow lint bench clean help \
	environment dev-environment
.DEFAULT_GOAL := demo

# Prints the comment at the head of this file.
help:
	@awk '!/^#/ { exit } { sub(/^# /, ""); print }' $(firstword $(MAKEFILE_LIST))

# scripts/run.py starts Snakemake with a progress line (docs/use/run.md) and tells this command where a run stops.
demo study small rehearsal paper slurm: export CROSSALIGN_AGAIN = make $@ $(MAKEOVERRIDES)

demo: environment
	@python scripts/run.py --warm --after "make small (real languages, one GPU) or make plan (what the papers need)" \
		-- --profile profiles/demo $(DEMO_ARGS) all

# One thread per process: two one-thread processes beat one two-thread process.
test: export OMP_NUM_THREADS := 1
test: dev-environment lint
	pytest -n auto --dist loadfile --ignore tests/slurm
	pytest -n 2 --dist loadfile tests/slurm # two at a time, as they mostly wait; SLURM gives a job few seconds to end

# Also the tests that take many minutes: kills at random moments, partial re-runs at paper scale.
test-slow: export CROSSALIGN_SLOW := 1
test-slow: test

# make plan TARGETS=adjust PLAN_ARGS="--hardware v100 --gpus 4"; the demo's: make plan CONFIGS=config.demo.yaml
# and what it has taken after a run: make plan CONFIGS=config.demo.yaml PLAN_ARGS=--measured
plan: environment
	python scripts/plan.py $(CONFIGS) --targets $(TARGETS) $(PLAN_ARGS)

# First one job of each kind, each alone on the GPU to be measured, then the others, which share it.
# REHEARSAL_ARGS=--tiny tries the layouts on a laptop; CONFIGS=file changes the run, such as its items or
# rehearsal.max_parameters.
REHEARSED = config.rehearsal.yaml $(CONFIGS) results/rehearsal/mirror.yaml

rehearsal: environment
	@python tools/make_rehearsal.py config.rehearsal.yaml $(CONFIGS) --out results/rehearsal/mirror $(REHEARSAL_ARGS)
	@kinds=$$(python scripts/plan.py $(REHEARSED) --targets $(TARGETS) --kinds) && { [ -z "$$kinds" ] || \
		python scripts/run.py -- --profile profiles/gpu --resources gpu=1 transfers=4 --configfile $(REHEARSED) -- $$kinds; }
	@python scripts/run.py --after "make plan (with what was measured)" -- --profile profiles/gpu --configfile $(REHEARSED) -- $(TARGETS)

paper: environment
	@python scripts/run.py --after "make publish RUN={run} TO=folder" -- --profile profiles/gpu $(TARGETS)

# make small TARGETS=data needs no GPU at all. CONFIGS=file changes the run, here and where it is carried.
small: environment
	@mkdir -p results/small
	@$(if $(MIRROR),printf 'downloads:\n  mirror: "file://%s"\n  mirror_checksums: mirror\n' "$(abspath $(MIRROR))",echo '{}') > results/small/mirror.yaml
	@python scripts/run.py --warm --after "make publish RUN={run} TO=folder" \
		-- --profile profiles/small --configfile config.small.yaml results/small/mirror.yaml $(CONFIGS) $(SMALL_ARGS) -- $(TARGETS)

# The file that it prints names the models: results/<run>/models.yaml
RESOLVE = python scripts/resolve_models.py $(or $(MODEL),$(error MODEL="folder or owner/name" is needed)) --configs config.study.yaml \
	$(CONFIGS) $(if $(filter file,$(origin RUN)),,--run $(RUN)) $(if $(LANGUAGES),--languages $(LANGUAGES)) \
	$(if $(SEEDS),--seeds $(SEEDS)) $(if $(MIRROR),--mirror $(MIRROR))

study: environment
	@models=$$($(RESOLVE)) && python scripts/run.py --warm --after "make publish RUN={run} TO=folder" \
		-- --profile profiles/study --configfile config.study.yaml $(CONFIGS) "$$models" $(STUDY_ARGS) -- $(TARGETS)

small-mirror: environment
	python tools/make_mirror.py $(FROM) --out results/small/mirror --config config.small.yaml

# CARRY_ARGS="--part 16" for smaller parts, CARRY_ARGS="--after folder" for what was not in an earlier folder.
small-send: environment
	@python tools/carry_run.py send --configs config.small.yaml $(CONFIGS) --targets $(TARGETS) --to $(or $(TO),$(error TO=folder is needed)) $(CARRY_ARGS)

small-receive: environment
	@python tools/carry_run.py receive --from $(or $(FROM),$(error FROM=folder is needed))

small-return: environment
	@python tools/carry_run.py return --configs config.small.yaml $(CONFIGS) --to $(or $(TO),$(error TO=folder is needed)) $(CARRY_ARGS)

slurm: environment
	@python scripts/run.py --after "make publish RUN={run} TO=folder" -- --profile profiles/slurm $(TARGETS)

report: environment
	python scripts/make_verdicts.py --config results/$(RUN)/config.json --results results/$(RUN)
	python scripts/make_report.py --config results/$(RUN)/config.json --results results/$(RUN) --out results/$(RUN)/report/index.html

publish: environment
	python tools/publish_run.py --results results/$(RUN) --out $(or $(TO),$(error TO=folder is needed))

# make pack TO=packed PACK_ARGS="--python 3.12 --platform x86_64 --have numpy --paths resources/downloads resources/downloads.lock"
pack: environment
	@python tools/pack_run.py --out $(or $(TO),$(error TO=folder is needed)) $(PACK_ARGS)

snakemake-report: environment
	snakemake --profile profiles/demo --report results/demo/report/snakemake.html all

demo-models: environment
	python tools/make_demo_models.py --out resources/demo/models

# Strict: a dead link or anchor fails.
docs: export NO_MKDOCS_2_WARNING := 1
docs: dev-environment
	mkdocs build --quiet
	@echo "site/index.html opens from disk"

bench: dev-environment
	python benchmarks/plan.py
	python benchmarks/prepare.py
	python benchmarks/aligner.py

lint: dev-environment
	ruff check .
	ruff format --check .
	snakefmt --check Snakefile rules
	snakemake --lint --profile profiles/demo

# Any other run than the demo asks first: make clean RUN=paper, or without a question make clean RUN=paper CONFIRM=paper
clean:
	@$(PYTHON) scripts/clean.py --run '$(RUN)' --confirm '$(CONFIRM)'

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

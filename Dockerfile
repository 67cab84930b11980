# The workflow with everything in requirements.txt.
#
#   docker build --tag crossalign .
#   docker run --rm crossalign                                                     # what can be run
#   docker run --rm --volume crossalign-results:/home/crossalign/crossalign/results crossalign make demo
#   docker run --rm --gpus all ... crossalign make paper TARGETS=anc
#
# torch comes from the package index that pip is set to. For another build of it, such as the small ones for CPUs:
#   docker build --build-arg PIP_ARGS="--extra-index-url <address>" --tag crossalign .
ARG PYTHON=3.13
FROM python:${PYTHON}-slim-bookworm
ARG PIP_ARGS=""

RUN apt-get update \
    && apt-get install --yes --no-install-recommends git make \
    && rm -rf /var/lib/apt/lists/*
RUN useradd --create-home --uid 1000 crossalign \
    && install --directory --owner crossalign --group crossalign /home/crossalign/crossalign
USER crossalign
WORKDIR /home/crossalign/crossalign

# Before the rest, so that a change of the code does not install everything again.
COPY --chown=crossalign Makefile requirements.txt ./
RUN PIP_NO_CACHE_DIR=1 make environment PYTHON=python PIP_ARGS="${PIP_ARGS}"

COPY --chown=crossalign . .
# The stamp of the environment stays newer than the list that it was made from.
RUN mkdir -p results && touch .venv/installed
ENV PATH=/home/crossalign/crossalign/.venv/bin:$PATH
CMD ["make", "help"]

# JupyterLab on a copy of the course, on any machine that runs Docker.
#   docker build -t byhand --build-arg TORCH=cpu --build-arg PIP_EXTRA_INDEX_URL=... .
#   docker run --rm -p 127.0.0.1:8888:8888 -v byhand-work:/course/work byhand
# prints the address to open. What you write stays in the volume byhand-work. TORCH=cpu takes torch
# without CUDA, a tenth of the image; torch's own site says which index has it. Without the two, the
# image has torch as pip finds it.
#
# Docker allows no namespaces inside: cells with a slow link then say so, as does grading. This gives
# both back: --cap-add SYS_ADMIN --security-opt seccomp=unconfined --security-opt apparmor=unconfined
FROM python:3.12-slim

# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends bubblewrap git iproute2 make \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --shell /bin/bash student \
    && mkdir -p /course/work \
    && chown -R student /course
USER student
WORKDIR /course
ENV PATH=/home/student/python/bin:$PATH

ARG TORCH=""
ARG PIP_EXTRA_INDEX_URL=""
COPY --chown=student constraints.txt ./
RUN python -m venv /home/student/python \
    && pip install --no-cache-dir --constraint constraints.txt \
       "torch==$(sed -n 's/^torch==//p' constraints.txt)${TORCH:++$TORCH}"

COPY --chown=student pyproject.toml README.md LICENSE LICENSE-TEXT ./
COPY --chown=student lib lib
COPY --chown=student autograder autograder
RUN pip install --no-cache-dir --constraint constraints.txt '.[instructor]'

COPY --chown=student lectures lectures
COPY --chown=student exercises exercises
EXPOSE 8888
CMD ["autograder", "lab", "--ip=0.0.0.0", "--no-browser"]

# Timbre on a GPU host:
#   docker build -t timbre . && docker run --gpus all -p 7860:7860 -v timbre:/data timbre
# Without a GPU, with PyTorch's build for CPUs:
#   docker build -t timbre-cpu --build-arg TORCH_INDEX=https://download.pytorch.org/whl/cpu .
#   docker run -p 7860:7860 -v timbre:/data timbre-cpu
# Visitors are guests: each sees only own voices and takes. With -e TIMBRE_API_KEYS=… a login is
# asked for, and -e TIMBRE_GUESTS=false shares one library (docs/spaces.md).
FROM python:3.12-slim-bookworm

ARG TORCH_INDEX=https://pypi.org/simple
# Triton, which PyTorch's build for GPUs brings, compiles the starters of its kernels when it first
# meets them. Debian keeps one version of a package: it cannot be pinned.
# hadolint ignore=DL3008
RUN case "$TORCH_INDEX" in */cpu) exit 0 ;; esac; \
    apt-get update \
    && apt-get install --yes --no-install-recommends gcc libc6-dev \
    && rm -rf /var/lib/apt/lists/*

WORKDIR /app
COPY requirements.txt requirements.lock ./
RUN python -m pip install --no-cache-dir --disable-pip-version-check --require-hashes \
        -r requirements.lock \
    && python -m pip install --no-cache-dir --disable-pip-version-check \
        --index-url "$TORCH_INDEX" "$(sed -n 's/^# \(torch[^ ]*\).*/\1/p' requirements.lock)"

COPY app.py LICENSE ./
COPY engine ./engine
COPY studio ./studio
COPY presets ./presets
COPY training/__init__.py ./training/
COPY training/voice ./training/voice

RUN useradd --create-home --uid 1000 timbre && mkdir /data && chown timbre /data
USER 1000
VOLUME /data
ENV PYTHONUNBUFFERED=1 \
    HF_HOME=/data/models \
    NUMBA_CACHE_DIR=/data/kernels \
    TIMBRE_DATA=/data/timbre \
    TIMBRE_HOST=0.0.0.0 \
    TIMBRE_GUESTS=true
EXPOSE 7860

# Loaded, not only alive. A model that TIMBRE_MODEL names is downloaded at the first start.
HEALTHCHECK --interval=10s --timeout=5s --start-period=15m \
    CMD ["python", "-c", "import urllib.request as web; web.urlopen('http://127.0.0.1:7860/ready')"]

# SIGTERM lets who is being served finish: docker stop --time 30
ENTRYPOINT ["python", "app.py"]

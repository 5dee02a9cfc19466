#!/bin/sh
# Every measurement of a GPU, stage by stage: sh bench/gpu_suite.sh OUT STAGE ...
#
#   CUDA_VISIBLE_DEVICES=3 taskset -c 54-63 sh bench/gpu_suite.sh /tmp/out engine http
#
# make      random checkpoints of the published shapes, which the others need (and make if need be)
# check     tests that only run on a GPU
# engine    the whole engine in this process: closed loops and arrivals, ready, memory
# defaults  the same alone, with no setting changed: ready and memory of a plain start
# http      the same as engine from outside, by two clients
# clones    voices from recordings, known and never heard before
# loads     where the time goes while requests come and end, on the device and on the host
# soak      listeners of all kinds for SOAK_MINUTES: whole, right, nothing left of them
# recordings  into codes and vectors, eager and from CUDA graphs
# kernels codec steps exact     parts of a step alone; frames from CUDA graphs against eager ones
#
# A stage ends within its seconds, whatever becomes of it, and takes none of the others with it. All
# it says is in OUT/STAGE.log. SIZE, DEVICE, ROWS and LOADS make it small enough to be tried on a CPU.
set -u
cd "$(dirname "$0")/.."
out=$1
shift
SIZE=${SIZE:-1.7B} DEVICE=${DEVICE:-cuda} MODELS=${MODELS:-/tmp/timbre-bench-$SIZE}
ROWS=${ROWS:-1,16,64,256} SECONDS_A_RATE=${SECONDS_A_RATE:-12}
LOADS=${LOADS:--c 1 -c 16 -c 32 -c 64 -c 128 -c 256 --rate 10 --rate 20 --rate 60}
CLIENT_LOADS=${CLIENT_LOADS:---concurrency 1 16 32 64 128 256 --rps 10 20 60}
MIXED=${MIXED:--c 32 -c 64 --burst 64} # what the stage loads is under
SOAK_MINUTES=${SOAK_MINUTES:-10} SOAK_RATE=${SOAK_RATE:-6}
CLIENT=${CLIENT:-} # another client of the same loads: a Python file
SLOTS=${SLOTS:-256} POSITIONS=${POSITIONS:-1024} REQUESTS=${REQUESTS:-48}
PORT=$((7860 + $(echo "${CUDA_VISIBLE_DEVICES:-0}" | cut -d, -f1)))
export PYTHONUNBUFFERED=1 TIMBRE_PAGE=false TIMBRE_DATA="$out/data"
export TIMBRE_ENGINE_MAX_NUM_SEQS=$SLOTS TIMBRE_ENGINE_MAX_WAITING=512 TIMBRE_ENGINE_MAX_SEQ_LEN=$POSITIONS
mkdir -p "$out" "$MODELS"

# A checkpoint of this kind: made by whoever comes first, the others wait for it.
need() {
    tries=0
    until [ -e "$MODELS/$1.made" ]; do
        [ $tries -ge 120 ] && echo "There is no checkpoint $1." && return 1
        if mkdir "$MODELS/$1.lock" 2>/dev/null; then
            python3 -m bench.random_checkpoint "$MODELS/$1" --size "$SIZE" --kind "$1" \
                --device "$DEVICE" && touch "$MODELS/$1.made"
            rmdir "$MODELS/$1.lock"
            tries=$((tries + 60))
        else
            tries=$((tries + 1))
            sleep 1
        fi
    done
}

loads() { # of a checkpoint in this process
    kind=$1
    shift
    need "$kind" && python3 -m bench --model "$MODELS/$kind" --device "$DEVICE" --card \
        --requests "$REQUESTS" --seconds "$SECONDS_A_RATE" "$@"
}
many() { loads "$@" --set "max_num_seqs=$SLOTS" --set max_waiting=512 --set "max_seq_len=$POSITIONS"; }

stage_make() { need custom_voice && need base && du -sh "$MODELS/custom_voice" "$MODELS/base"; }
stage_check() {
    python3 -m pytest -W default -p no:cacheprovider -n "${WORKERS:-4}" --tb=short tests/engine/worker/kernels \
        tests/engine/worker/test_cuda.py tests/engine/worker/state/test_cuda_vmm.py \
        tests/engine/worker/codec/test_fused_decoder.py
}
stage_engine() { many custom_voice $LOADS --out "$out/engine.json"; }
stage_defaults() { loads custom_voice -c 1 --out "$out/defaults.json"; }
stage_clones() {
    many base -c 16 --kind context --out "$out/context.json"
    many base -c 16 --kind cold --out "$out/cold.json"
}
stage_http() {
    need custom_voice || return 1
    python3 app.py --model "$MODELS/custom_voice" --device "$DEVICE" --port "$PORT" &
    server=$!
    begun=$(date +%s)
    until python3 -c "import urllib.request as u; u.urlopen('http://127.0.0.1:$PORT/ready')" 2>/dev/null; do
        kill -0 $server || return 1
        sleep 0.3
    done
    echo "ready after $(($(date +%s) - begun)) s"
    [ -z "$CLIENT" ] || python3 "$CLIENT" "http://127.0.0.1:$PORT/v1/audio/speech" --voice ryan \
        --requests "$REQUESTS" --seconds "$SECONDS_A_RATE" --extra '{"ignore_eos": true}' \
        --out "$out/client.json" $CLIENT_LOADS
    python3 -m bench --url "http://127.0.0.1:$PORT" --voice ryan --card --requests "$REQUESTS" \
        --seconds "$SECONDS_A_RATE" $LOADS --out "$out/http.json"
    kill $server
    wait $server
}
stage_loads() {
    need custom_voice && python3 -m bench.gpu.profile_load "$MODELS/custom_voice" $MIXED --device "$DEVICE" \
        --set "max_num_seqs=$SLOTS" --set max_waiting=512 --set "max_seq_len=$POSITIONS" --out "$out"
}
stage_soak() {
    need custom_voice && python3 -m bench.gpu.soak "$MODELS/custom_voice" --minutes "$SOAK_MINUTES" \
        --rate "$SOAK_RATE" --device "$DEVICE" --set "max_num_seqs=$SLOTS" --set max_waiting=512 \
        --set "max_seq_len=$POSITIONS" --out "$out"
}
stage_kernels() { python3 -m bench.gpu.kernels --size "$SIZE" --rows 1,2,4,8,16,32,64,128,256; }
stage_codec() {
    python3 -m bench.gpu.codec check streams --size "$SIZE"
    python3 -m bench.gpu.codec time --form fused-fp16 --size "$SIZE" --out "$out/codec.json"
}
stage_recordings() {
    python3 -m bench.gpu.encoders --size "$SIZE" --device "$DEVICE" --out "$out/recordings.json"
}
stage_steps() {
    python3 -m bench.gpu.decode_steps --size "$SIZE" --device "$DEVICE" --slots 256 --check \
        --rows 1 4 8 16 24 32 48 64 96 128 192 256 --profile 1 64 256 --out "$out"
}
stage_exact() {
    python3 -m bench.gpu.decode_steps --size "$SIZE" --device "$DEVICE" --slots 64 --times 0 \
        --check 1 3 17 64 --frames "${FRAMES:-200}"
}

limit() { # seconds of a stage
    case $1 in
    http) echo 330 ;; engine) echo 240 ;; check | exact) echo 300 ;;
    soak) echo $((${SOAK_MINUTES%.*} * 60 + 300)) ;;
    loads) echo 120 ;; codec | clones | steps) echo 200 ;; *) echo 150 ;;
    esac
}

# What a stage found, in a few lines.
told() {
    case $1 in
    engine | defaults | http | clones)
        (cd "$out" && python3 - "$1" <<'EOF'
import json, pathlib, sys
files = {"clones": ("context", "cold"), "http": ("client", "http")}.get(sys.argv[1], sys.argv[1:])
for name in files:
    path = pathlib.Path(f"{name}.json")
    report = json.loads(path.read_text()) if path.exists() else []
    if isinstance(report, dict):
        kept = ("ready_seconds", "memory_bytes", "slots", "places", "gaps")
        print(name, {key: report[key] for key in kept if key in report})
        report = report["loads"]
    for row in report:
        get = lambda *keys: next((row[key] for key in keys if key in row), float("nan"))
        first = [get(f"first_p{p}_ms", f"ttfp_p{p}_ms") for p in (50, 95, 99)]
        speed = get("audio_per_second", "audio_s_per_s")
        print(f"{name:8} {row['load']:16} {row['ok']:4} ok {row['failed']:3} failed, first byte",
              "/".join(f"{ms:.1f}" for ms in first), f"ms, RTF {get('rtf_mean'):.4f},",
              f"{speed:.0f} audio s/s, underruns {get('underrun_rate'):.3f},",
              f"busy {get('card_busy'):.2f}")
EOF
        )
        ;;
    loads) grep -A 99 '^load ' "$out/loads.log" || tail -n 6 "$out/loads.log" ;;
    soak) tail -n 8 "$out/soak.log" ;;
    check | make) tail -n 4 "$out/$1.log" ;;
    steps) grep '^{' "$out/steps.log" | cut -c1-110 ;;
    recordings) cat "$out/recordings.log" ;;
    kernels) grep '_ms' "$out/kernels.log" ;;
    codec) grep -E 'dB|replayed' "$out/codec.log" | cut -c1-110 | tail -n 20 ;;
    *) tail -n 6 "$out/$1.log" ;;
    esac
}

for stage in "$@"; do
    begun=$(date +%s)
    if [ "${INNER:-}" = 1 ]; then
        "stage_$stage"
        exit
    fi
    INNER=1 timeout -k 5 "$(limit "$stage")" sh "bench/$(basename "$0")" "$out" "$stage" \
        >"$out/$stage.log" 2>&1
    echo "$stage: status $?, $(($(date +%s) - begun)) s" >>"$out/stages.txt"
done
room=$((24 / $#))
for stage in "$@"; do
    grep "^$stage:" "$out/stages.txt" | tail -n 1
    [ "$stage" = loads ] && lines=41 || lines=$room # a table
    told "$stage" 2>&1 | tail -n "$lines" | cut -c1-220
done

#!/bin/sh
# Makes Timbre Mini on a machine with one GPU or more: sh training/all.sh FOLDER
# On a machine that is only lent: sh training/all.sh FOLDER OUT SECONDS. The first such call starts
# the same in the background; every call waits so many seconds, or until that is done, then leaves
# in OUT what is new: weights in half precision in pieces of 15 MiB, and the ends of the logs.
#
# FOLDER gets texts, teacher, speech, states and logs. What is there already is used again:
# said.json.gz and said-aside.json.gz (or PACKAGES says where wordnet-base and wamerican were
# unpacked), kokoro.pt (or SITE says where the teacher's packages are, or it is waited for). Training
# continues from the weights in BEGIN (empty: from nothing), or in FOLDER/begin if that is there.
#
# All ends by BY, in seconds since 1970; the rest in seconds since the start (speech: since the
# teacher is there):
#   speech      MAKERS processes on each GPU until SPEECH, one of them until MORE_SPEECH
#   codec       first GPU, until CODEC; then its codes stay, and its decoder goes on until the end
#               (both it and the talker get ready WARM_UP seconds before)
#   speaker     second GPU: encoder until CODEC - SMOOTH, then towards its targets until CODEC
#   rehearsal   second GPU, beside it: the talker on the codes of a codec that still learns
#   talker      second GPU, from CODEC to the end
# ONLY_CODEC=1: speech and codec alone, for a run in which codes are still to get better: until
#   the end, on both GPUs if there are two.
# CODES_STAY=1: the codec stays as it is; the talker goes on, to the end, on all GPUs. The speaker
#   encoder stays too, or goes on towards its targets until SPEAKER seconds, and the talker then.
# TILT=0.12: how much brighter a decoder that was trained gets at the end (empty: not at all).
# The arguments that make it small enough for a try: SPEECH_MORE, CODEC_MORE, DECODER_MORE,
# SPEAKER_MORE, SMOOTH_MORE, TALKER_MORE are added to each command.
set -eu
work=$1
python=${PYTHON:-python3}
logs=$work/logs
mkdir -p "$logs"

codec_is_unsaved() { # it has not saved itself yet
    [ ! -f "$work/codec.pt" ] || { [ -f "$work/begin/codec.pt" ] && [ ! "$work/codec.pt" -nt "$work/begin/codec.pt" ]; }
}

deliver() { # OUT: the newest weights of each part; decoder.pt has all of the codec
    codec=decoder
    [ -f "$work/decoder.pt" ] || codec=codec
    for name in speaker talker $codec; do
        state=$work/$name.pt
        [ -f "$state" ] || continue
        [ $name != codec ] || ! codec_is_unsaved || continue
        [ ! -f "$work/small/$name.sent" ] || [ "$state" -nt "$work/small/$name.sent" ] || continue
        mkdir -p "$work/small"
        touch -r "$state" "$work/small/$name.sent"
        $python -m training.state weights "$state" "$work/small/$name.pt"
        $python -m training.state split "$work/small/$name.pt" "$1"
    done
    tail -n 30 "$logs"/*.log > "$1/logs.txt"
}

if [ $# -gt 1 ]; then
    mkdir -p "$2"
    if [ ! -f "$work/pid" ]; then
        setsid nohup sh "$0" "$work" > "$logs/all.log" 2>&1 &
        echo $! > "$work/pid"
    fi
    until=$(($(date +%s) + $3))
    while [ "$(date +%s)" -lt "$until" ] && kill -0 "$(cat "$work/pid")" 2> /dev/null; do sleep 1; done
    deliver "$2"
    tail -n 2 "$logs"/*.log
    exit
fi

start=$(date +%s)
by=${BY:-$((start + 1500))}
ends=$((by - ${SAVING:-40}))
speech=${SPEECH:-95}
more_speech=${MORE_SPEECH:-420}
codec_by=$((start + ${CODEC:-390}))
if [ -n "${ONLY_CODEC:-}" ]; then
    more_speech=$speech codec_by=$ends
fi
smooth_from=$((codec_by - ${SMOOTH:-110}))
hours=${HOURS:-30}                     # room for speech on a device: 0.17 GB an hour
first_hours=${FIRST_HOURS:-3}          # of speech that training waits for
makers=${MAKERS:-2}
graphs=${GRAPHS---cuda-graphs}         # GRAPHS= COMPILE= where there is no CUDA
gpus=${GPUS:-$(nvidia-smi --list-gpus 2> /dev/null | wc -l)}
[ "$gpus" -gt 0 ] || gpus=1
second=$((gpus > 1))

on() { # GPU MODULE ARGUMENTS...
    gpu=$1
    shift
    CUDA_VISIBLE_DEVICES=$gpu OMP_NUM_THREADS=${THREADS:-4} NCCL_NVLS_ENABLE=0 $python -m "$@"
}

texts() { # FILE OPTIONS...: the teacher's phonemes of all texts, unless they are there
    file=$1
    shift
    [ ! -f "$file" ] || return 0
    [ -f "$work/corpus.json" ] || $python -m training.data.text --root "${PACKAGES:-/}" --out "$work/corpus.json"
    $python -m training.teachers.phonemes --corpus "$work/corpus.json" --out "$file" "$@"
}
[ -n "${ONLY_CODEC:-}" ] || texts "$work/said-aside.json.gz" --held-out
texts "$work/said.json.gz"
[ -f "$work/kokoro.pt" ] || [ -z "${SITE:-}" ] ||
    $python -m training.teachers.kokoro_weights "$SITE" "$work/kokoro.pt"
begin=${BEGIN-presets/mini}
[ -z "$begin" ] || [ -d "$work/begin" ] ||
    $python -m training.resume join "$begin" "${PARTS:-training/parts.pt}" "$work/begin"
begun="codec:codec speaker:known talker:rehearsal"
[ -z "${CODES_STAY:-}" ] || begun="codec:decoder talker:talker"
for pair in $begun; do
    from=$work/begin/${pair%:*}.pt to=$work/${pair#*:}.pt
    [ ! -f "$from" ] || [ -f "$to" ] || cp -p "$from" "$to"
done
if [ -z "${ONLY_CODEC:-}" ] && [ ! -d "$work/tokenizer" ]; then
    if [ -d "$work/begin/tokenizer" ]; then
        cp -r "$work/begin/tokenizer" "$work/tokenizer"
    else
        $python -m training.tokenizer --corpus "$work/corpus.json" --out "$work/tokenizer"
    fi
fi

wait_for() { # WHAT COMMAND...: until COMMAND succeeds, or it is too late for any training
    what=$1
    shift
    until "$@"; do
        [ "$(date +%s)" -lt "$ends" ] || { echo "$what did not come in time" >&2 && exit 1; }
        sleep 1
    done
}
until_taught() { wait_for kokoro.pt test -f "$work/kokoro.pt"; }
until_validation() { wait_for "speech to be judged by" test -f "$work/validation.done"; }
speech() { # GPU NUMBER SECONDS: shards from 1000 * NUMBER on, once the teacher is there
    until_taught
    last=$(($(date +%s) + $3))
    # While others capture their steps there may be no memory left: then once more.
    until CUDA_VISIBLE_DEVICES=$1 OMP_NUM_THREADS=2 nice $python -m training.teachers.synthesize \
        --teacher "$work/kokoro.pt" --said "$work/said.json.gz" --out "$work/speech" \
        --first $((1000 * $2)) --shards 1000 --until "$last" ${SPEECH_MORE:-} >> "$logs/speech$2.log" 2>&1; do
        [ "$(date +%s)" -lt "$last" ] || return 0
        sleep 2
    done
}
number=0
for gpu in $(seq $((gpus - 1)) -1 0); do
    for maker in $(seq "$makers"); do
        [ "$number" = 0 ] && seconds=$more_speech || seconds=$speech
        speech "$gpu" "$number" "$seconds" &
        number=$((number + 1))
    done
done

validation() { # speech that the talker is judged by and never learns from
    until_taught
    until on "$second" training.teachers.synthesize --teacher "$work/kokoro.pt" --said "$work/said-aside.json.gz" \
        --out "$work/validation" --first 90000 ${SPEECH_MORE:-} --shards 1 >> "$logs/validation.log" 2>&1; do
        echo "validation: once more"
        [ "$(date +%s)" -lt "$ends" ] || return 1
        sleep 2
    done
    touch "$work/validation.done"
}

codec_is_there() { # saved since it began, or it has ended
    [ -f "$work/settled.pt" ] || ! codec_is_unsaved
}
codec() { # NUMBER MORE...: as the first or second of those that train it together
    number=$1
    shift
    on "$number" training.train_codec --speech "$work/speech" --state "$work/codec.pt" \
        --minutes 600 --until "$codec_by" --wait-hours "$first_hours" --hours "$hours" --save-every 40 \
        $graphs ${COMPILE---compile} "$@" ${CODEC_MORE:-} >> "$logs/codec$number.log" 2>&1
}
together() { # COUNT COMMAND...: COMMAND GPU OPTIONS on so many GPUs; if that fails, on the first from the last save
    count=$1
    shift
    meeting=$work/$1.meeting
    rm -f "$meeting"
    for rank in $(seq $((count - 1))); do
        "$@" "$rank" --restart --peers "$count" --rank "$rank" --meeting "$meeting" &
    done
    "$@" 0 --restart --peers "$count" --meeting "$meeting" || { echo "$1: once more, alone" && "$@" 0; }
}
# Decoder and talker compile and capture their steps while the codec still learns.
until_warm_up() { while [ "$(date +%s)" -lt $((codec_by - ${WARM_UP:-280})) ] && [ ! -f "$work/settled.pt" ]; do sleep 1; done; }
decoder() {
    on 0 training.train_decoder --speech "$work/speech" --codec "$work/settled.pt" \
        --state "$work/decoder.pt" --minutes 600 --until "$ends" --hours "$hours" --save-every 60 \
        $graphs ${COMPILE---compile} ${DECODER_MORE:-} > "$logs/decoder.log" 2>&1
}
speaker() {
    [ ! -f "$work/known.pt" ] || known="--init $work/known.pt"
    on "$second" training.train_speaker --speech "$work/speech" --out "$work/apart.pt" ${known:-} \
        --until "$smooth_from" --minutes 600 --wait-hours "$first_hours" --hours "$hours" \
        ${SPEAKER_MORE:-} > "$logs/speaker.log" 2>&1
    wait_for "a codec" codec_is_there
    cp "$work/codec.pt" "$work/heard.pt"
    smooth "$work/apart.pt" "$work/heard.pt" "$codec_by"
}
smooth() { # SPEAKER CODEC BY: the encoder towards its targets
    on "$second" training.smooth_speaker --speech "$work/speech" --init "$1" --codec "$2" \
        --out "$work/speaker.part" --until "$3" --minutes 600 --wait-hours "$first_hours" \
        --hours "$hours" ${SMOOTH_MORE:-} > "$logs/smooth.log" 2>&1 &&
        mv "$work/speaker.part" "$work/speaker.pt"
}

talker() { # GPU CODEC STATE BY MORE...
    gpu=$1 heard=$2 state=$3 until=$4
    shift 4
    on "$gpu" training.train_talker --speech "$work/speech" --codec "$heard" \
        --tokenizer "$work/tokenizer" --state "$state" --validation "$work/validation" \
        --minutes 600 --until "$until" --wait-hours "$first_hours" --hours "$hours" \
        --save-every 60 $graphs "$@" ${TALKER_MORE:-}
}
last_codec=$work/ready.pt
[ -z "${CODES_STAY:-}" ] || last_codec=$work/decoder.pt
last_talker() { # GPU MORE...: the one that stays
    own=$1
    shift
    talker "$own" "$last_codec" "$work/talker.pt" "$ends" --speaker "$work/speaker.pt" --self-rollout \
        ${COMPILE---compile} "$@" >> "$logs/talker$own.log" 2>&1
}
rehearsal() {
    wait_for "a codec" codec_is_there
    until_validation
    cp "$work/codec.pt" "$work/early.pt"
    talker "$second" "$work/early.pt" "$work/rehearsal.pt" "$codec_by" --restart > "$logs/rehearsal.log" 2>&1
}

export_model() {
    $python -m training.export --codec "$work/decoder.pt" --speaker "$work/speaker.pt" \
        --talker "$work/talker.pt" --tokenizer "$work/tokenizer" --out "$work/model"
}

if [ -n "${ONLY_CODEC:-}" ]; then
    together $((second + 1)) codec
    exit
fi
validation &
if [ -n "${CODES_STAY:-}" ]; then
    together "$gpus" last_talker &
    talker=$!
    until_validation
    if [ -n "${SPEAKER:-}" ]; then
        for _ in 1 2; do # a second time if there was no memory
            [ -f "$work/speaker.pt" ] || smooth "$work/begin/speaker.pt" "$work/decoder.pt" $((start + SPEAKER)) ||
                echo "the speaker encoder failed"
        done
    fi
    # The talker waits for this.
    [ -f "$work/speaker.pt" ] || { cp "$work/begin/speaker.pt" "$work/speaker.part" && mv "$work/speaker.part" "$work/speaker.pt"; }
    wait "$talker" || echo "the talker failed"
    export_model
    exit
fi
rehearsal &
rehearsal=$!
speaker &
speaker=$!
{ until_warm_up && decoder; } &
decoder=$!
{ until_warm_up && last_talker "$second" --restart; } &
talker=$!
codec 0 --restart || echo "the codec failed"
cp "$work/codec.pt" "$work/settled.part" && mv "$work/settled.part" "$work/settled.pt"
wait "$rehearsal" || echo "the rehearsal failed"
wait "$speaker" || echo "the speaker encoder failed"
[ -f "$work/speaker.pt" ] || cp "$work/apart.pt" "$work/speaker.pt"
[ -f "$work/talker.pt" ] || $python -m training.state weights "$work/rehearsal.pt" "$work/talker.pt"
ln -f "$work/settled.pt" "$work/ready.pt" # now the talker can begin
wait "$talker" || echo "the talker failed"
wait "$decoder" || echo "the decoder failed"
[ -z "${TILT-0.12}" ] || $python -m training.equalize --state "$work/decoder.pt" --speech "$work/speech" --tilt "${TILT-0.12}"
export_model

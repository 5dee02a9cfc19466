#!/bin/sh
# Teaches Timbre Mini's codec people, and its talker the codec, on four GPUs of which the first may
# come later: sh training/people.sh FOLDER OUT SECONDS, as all.sh does it (the first call starts it
# in the background, every call leaves in OUT what is new).
#
# FOLDER has begin/ (`training.resume join`), said.json.gz, said-aside.json.gz, kokoro.pt (or is
# waited for) and packed/ (`training.data.recordings pack`, and a file done). All ends by BY; times in
#   GPUs 1, 2   makers of speech until SPEECH; the codec until CODEC; its decoder to the end
#   GPU 3       a maker; the talker, on the embedded codec's codes until CODEC, then on the new ones
#   GPU 0       from FIRST_GPU on: the talker's second process; the speaker encoder until CODEC
# TALKERS=1: the talker on GPU 3 alone. GRAPHS= COMPILE= where there is no CUDA.
set -eu
work=$1
python=${PYTHON:-python3}
logs=$work/logs
mkdir -p "$logs"

deliver() { # OUT: the newest weights of each part
    codec=decoder
    [ -f "$work/decoder.pt" ] || codec=codec
    for name in speaker talker $codec; do
        state=$work/$name.pt
        [ -f "$state" ] && [ "$state" -nt "$work/begun" ] || continue
        [ ! -f "$work/small/$name.sent" ] || [ "$state" -nt "$work/small/$name.sent" ] || continue
        mkdir -p "$work/small"
        touch -r "$state" "$work/small/$name.sent"
        $python -m training.state weights "$state" "$work/small/$name.pt"
        $python -m training.state split "$work/small/$name.pt" "$1"
    done
    tail -n 40 "$logs"/*.log > "$1/logs.txt"
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
ends=$((by - ${SAVING:-45}))
codec_by=$((start + ${CODEC:-700}))
graphs=${GRAPHS---cuda-graphs} compile=${COMPILE---compile}

on() { # GPU MODULE ARGUMENTS...
    gpu=$1
    shift
    CUDA_VISIBLE_DEVICES=$gpu OMP_NUM_THREADS=4 NCCL_NVLS_ENABLE=0 $python -m "$@"
}
until_there() {
    until [ -f "$1" ]; do
        [ "$(date +%s)" -lt "$ends" ] || exit 1
        sleep 1
    done
}
wait_until() { while [ "$(date +%s)" -lt "$1" ]; do sleep 1; done; }

for pair in codec:codec talker:talker speaker:apart; do
    cp -n "$work/begin/${pair%:*}.pt" "$work/${pair#*:}.pt"
done
touch "$work/begun"
{ until_there "$work/packed/done"; $python -m training.data.recordings unpack "$work/packed" "$work/people" > "$logs/people.log" 2>&1; } &

maker() { # GPU NUMBER SECONDS
    until_there "$work/kokoro.pt"
    last=$(($(date +%s) + $3))
    until CUDA_VISIBLE_DEVICES=$1 OMP_NUM_THREADS=2 nice $python -m training.teachers.synthesize \
        --teacher "$work/kokoro.pt" --said "$work/said.json.gz" --out "$work/speech" \
        --first $((1000 * $2)) --shards 1000 --seed 61 --until "$last" ${SPEECH_MORE:-} >> "$logs/speech$2.log" 2>&1; do
        [ "$(date +%s)" -lt "$last" ] || return 0
        sleep 2
    done
}
number=0
for gpu in ${MAKERS:-1 2 3 1 2}; do
    maker "$gpu" "$number" "${SPEECH:-330}" &
    number=$((number + 1))
done
validation() {
    until_there "$work/kokoro.pt"
    until on 3 training.teachers.synthesize --teacher "$work/kokoro.pt" --said "$work/said-aside.json.gz" \
        --out "$work/validation" --first 90000 ${SPEECH_MORE:-} --shards 1 >> "$logs/validation.log" 2>&1; do sleep 2; done
    touch "$work/validation.done"
}
validation &

codec() { # RANK
    on $((1 + $1)) training.train_codec --speech "$work/speech" --state "$work/codec.pt" --restart \
        --people "$work/people" --keep "$work/begin/codec.pt" --minutes 600 --until "$codec_by" --batch 9 \
        --adversarial-from 0.02 --rate 0.0004 --wait-hours "${FIRST_HOURS:-3}" --hours "${CODEC_HOURS:-24}" --save-every 40 \
        --peers 2 --rank "$1" --meeting "$work/codec.meeting" $graphs $compile ${CODEC_MORE:-} >> "$logs/codec$1.log" 2>&1
}
decoder() { # RANK
    wait_until $((codec_by - ${WARM_UP:-280}))
    on $((1 + $1)) training.train_decoder --speech "$work/speech" --codec "$work/settled.pt" --state "$work/decoder.pt" \
        --people "$work/people" --minutes 600 --until "$ends" --hours "${CODEC_HOURS:-24}" --save-every 60 \
        --peers 2 --rank "$1" --meeting "$work/decoder.meeting" $graphs $compile ${DECODER_MORE:-} >> "$logs/decoder$1.log" 2>&1
}
speaker() {
    on 0 training.smooth_speaker --speech "$work/speech" --init "$work/begin/speaker.pt" --codec "$work/begin/codec.pt" \
        --out "$work/speaker.part" --until $((codec_by - 10)) --minutes 600 --wait-hours "${FIRST_HOURS:-3}" --hours "${SPEAKER_HOURS:-24}" \
        --speed 0.25 --microphones --rate 0.001 ${SMOOTH_MORE:-} > "$logs/speaker.log" 2>&1 && mv "$work/speaker.part" "$work/speaker.pt"
}
talkers=${TALKERS:-2}
talker() { # RANK
    gpu=$((3 * (1 - $1)))
    until_there "$work/validation.done"
    on "$gpu" training.train_talker --speech "$work/speech" --codec "$work/begin/codec.pt" --speaker "$work/begin/speaker.pt" \
        --next-codec "$work/settled.pt" --next-speaker "$work/speaker.pt" --tokenizer "$work/begin/tokenizer" \
        --state "$work/talker.pt" --validation "$work/validation" --restart --minutes 600 --until "$ends" \
        --wait-hours "${TALKER_FIRST_HOURS:-30}" --hours "${HOURS:-90}" --save-every 60 --rate 0.001 --self-rollout \
        --peers "$talkers" --rank "$1" --meeting "$work/talker.meeting" $graphs $compile ${TALKER_MORE:-} >> "$logs/talker$1.log" 2>&1
}

codec 1 &
{ decoder 1 || true; } &
decoder 0 &
decoder=$!
talker 0 &
talker=$!
{
    wait_until $((start + ${FIRST_GPU:-240}))
    speaker || echo "the speaker encoder failed"
} &
speaker=$!
if [ "$talkers" = 2 ]; then
    { wait_until $((start + ${FIRST_GPU:-240})); talker 1; } &
fi
codec 0 || echo "the codec failed"
wait "$speaker"
[ -f "$work/speaker.pt" ] || cp "$work/begin/speaker.pt" "$work/speaker.pt"
cp "$work/codec.pt" "$work/settled.part" && mv "$work/settled.part" "$work/settled.pt"
wait "$decoder" || echo "the decoder failed"
wait "$talker" || echo "the talker failed"
touch "$work/done"

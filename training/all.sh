#!/bin/sh
# Makes Timbre Mini from nothing on a machine with GPUs: sh training/all.sh FOLDER
# FOLDER gets corpus, speech, states and logs; what is there already is used again, so that a
# stopped run goes on. PACKAGES: where flite, wordnet-base and wamerican were unpacked.
#
# One GPU does it all. A second one takes the speaker encoder and the talker, which begins on
# early codes (the rehearsal) and learns the final ones while the first GPU goes on with the
# decoder alone: that changes how codes sound, not which codes speech has. A third one takes a
# speaker encoder that goes on (SPEAKER_AGAIN), which the second one does where there is none.
# GPUS and FIRST say how many there are for this, and which is the first, where others are at work.
#
# CODEC_STAYS=1: FOLDER/codec.pt stays as it is. The talker rehearses until the speaker encoder
# is done, at most CODEC_MINUTES, then goes on with that.
set -eu
work=$1
packages=${PACKAGES:-/}
speech_minutes=${SPEECH_MINUTES:-30}   # stop making speech after so long
codec_minutes=${CODEC_MINUTES:-40}
codec_judged_from=${CODEC_JUDGED_FROM:-0.72}
codec_stays=${CODEC_STAYS:-0}           # 1: the codec that is there is not trained
rehearsal=${REHEARSAL:-0}               # 1: the talker begins on early codes
more_steps=${SPEAKER_AGAIN:-}           # steps more of a speaker encoder that is there; 0: smoothed alone
smooth_minutes=${SPEAKER_SMOOTH:-4}     # behind them: every voice finds its home
decoder_minutes=${DECODER_MINUTES:-0}
talker_minutes=${TALKER_MINUTES:-40}
by=${BY:+--by $BY}                     # when talker and decoder stop, in seconds since 1970
python=${PYTHON:-python3}
record=${RECORD---record}              # RECORD= where there is no CUDA
hours=${HOURS:-60}                     # room for speech on the device: 0.17 GB an hour
gpus=${GPUS:-$(nvidia-smi --list-gpus 2> /dev/null | wc -l)}
first=${FIRST:-0}
second=$(( gpus > 1 ))
third=$(( gpus > 2 ? 2 : second ))
mkdir -p "$work"
export FLITE_ROOT=$packages
export LD_LIBRARY_PATH="$packages/usr/lib/x86_64-linux-gnu:${LD_LIBRARY_PATH:-}"

often=45                               # seconds: how often a talker is saved
instead=                               # exec: the command takes the place of its shell
on_first() { CUDA_VISIBLE_DEVICES=$first OMP_NUM_THREADS=4 $python -m "$@"; }
on_second() { CUDA_VISIBLE_DEVICES=$((first + second)) OMP_NUM_THREADS=4 $instead $python -m "$@"; }
on_third() { CUDA_VISIBLE_DEVICES=$((first + third)) OMP_NUM_THREADS=4 $python -m "$@"; }

codec() { # STATE MINUTES MORE...
    state=$1 minutes=$2
    shift 2
    on_first training.train_codec --speech "$work/speech" --state "$state" --minutes "$minutes" \
        --hours "$hours" --batch "${CODEC_BATCH:-20}" --save-every 45 $record "$@"
}

talker() { # CODEC SPEAKER STATE MINUTES HOURS-FIRST MORE...
    heard=$1 speaker=$2 state=$3 minutes=$4 wait_hours=$5
    shift 5
    on_second training.train_talker --speech "$work/speech" --codec "$heard" \
        --speaker "$speaker" --tokenizer "$work/tokenizer" --state "$state" \
        --aside "$work/aside" --wait-hours "$wait_hours" --rate "${TALKER_RATE:-0.0015}" \
        --stray "${TALKER_STRAY:-0.15}" ${TALKER_OWN---own} \
        --dropout "${TALKER_DROPOUT:-0.1}" --guidance "${GUIDANCE:-0.5}" --minutes "$minutes" \
        --hours "$hours" --rows "${TALKER_ROWS:-24576}" --save-every "$often" $record "$@"
}

[ -f "$work/corpus.json" ] || $python -m training.data.text --root "$packages" --out "$work/corpus.json"
[ -d "$work/tokenizer" ] || $python -m training.tokenizer --corpus "$work/corpus.json" --out "$work/tokenizer"

# Speech is made beside the training, some cores left free.
workers=$(( $(nproc) > 3 ? $(nproc) - 2 - 2 * second : 1 ))
OMP_NUM_THREADS=1 timeout "${speech_minutes}m" nice $python -m training.data.synthesize_corpus \
    --corpus "$work/corpus.json" --out "$work/speech" --shards "${SHARDS:-420}" \
    --workers "$workers" --utterances "${UTTERANCES:-160}" > "$work/speech.log" 2>&1 &
maker=$!
trap 'kill $maker 2>/dev/null || true' EXIT

# Speech that the talker is judged by and never learns from.
{
    OMP_NUM_THREADS=1 $python -m training.data.synthesize_corpus --corpus "$work/corpus.json" --out "$work/aside" \
        --first 100000 --shards 2 --workers 2 --utterances "${UTTERANCES:-160}" > "$work/aside.log" 2>&1
    touch "$work/aside.done"
} &
aside=$!

# A talker asks for voices by their homes, so a speaker encoder has to know them.
smooth() { # BEGIN CODEC
    on_third training.smooth_speaker --speech "$work/speech" --begin "$1" --codec "$2" \
        --out "$work/again.pt" --hours "$hours" --minutes "$smooth_minutes" --batch 192 \
        --copies 4000 >> "$work/speaker.log" 2>&1
    mv "$work/again.pt" "$work/speaker.pt"
    rm -f "$work/speaker.new"
}

# A speaker encoder that is there already learns voices through the codec, too.
speaker_again() {
    begin=$work/early-speaker.pt
    if [ "${more_steps:-0}" -gt 0 ]; then
        on_third training.train_speaker --speech "$work/speech" --begin "$begin" \
            --codec "$work/early.pt" --out "$work/again.pt" --wait-hours "${SPEAKER_HOURS:-6}" \
            --hours "$hours" --rate 0.001 --steps "$more_steps" > "$work/speaker.log" 2>&1
        begin=$work/again.pt
    fi
    smooth "$begin" "$work/early.pt"
}

# The speaker encoder learns beside the codec, and so does a talker that rehearses.
rehearse() {
    if [ ! -f "$work/speaker.pt" ]; then
        touch "$work/speaker.new"
        on_second training.train_speaker --speech "$work/speech" \
            --out "$work/speaker.pt" --wait-hours "${SPEAKER_HOURS:-6}" --hours "$hours" \
            --steps "${SPEAKER_STEPS:-6000}" > "$work/speaker.log" 2>&1
    fi
    [ "$rehearsal" = 1 ] && [ ! -f "$work/talker.pt" ] || return 0
    until [ -f "$work/codec.pt" ] && [ -f "$work/aside.done" ]; do sleep 1; done
    [ -f "$work/early.pt" ] || cp "$work/codec.pt" "$work/early.pt"
    cp "$work/speaker.pt" "$work/early-speaker.pt"
    { [ -z "$more_steps" ] && [ ! -f "$work/speaker.new" ]; } || speaker_again &
    again=$!
    [ "$codec_stays" = 0 ] || often=15 # a rehearsal that is stopped loses no more
    instead=exec
    talker "$work/early.pt" "$work/early-speaker.pt" "$work/rehearsal.pt" "$codec_minutes" \
        "${REHEARSAL_HOURS:-8}" --by "$codec_done" > "$work/rehearsal.log" 2>&1 &
    talking=$!
    if [ "$codec_stays" = 1 ]; then
        wait $again || true
        kill $talking 2> /dev/null || true
    else
        wait $talking
    fi
    wait
    $python -m training.state weights "$work/rehearsal.pt" "$work/talker.pt"
}
codec_done=$(awk "BEGIN { print $(date +%s) + 60 * $codec_minutes }")
rehearse &
rehearsing=$!
[ "$codec_stays" = 1 ] ||
    codec "$work/codec.pt" "$codec_minutes" --judged-from "$codec_judged_from" | tee -a "$work/codec.log"
wait $rehearsing || [ -f "$work/speaker.pt" ]
wait $aside
[ ! -f "$work/speaker.new" ] || smooth "$work/speaker.pt" "$work/codec.pt"

# Beside the talker where there is a second GPU, after it where there is one.
decoder() {
    [ "$decoder_minutes" != 0 ] || return 0
    [ -f "$work/decoder.pt" ] || $python -m training.state weights "$work/codec.pt" "$work/decoder.pt"
    codec "$work/decoder.pt" "$decoder_minutes" --decoder-only --judged-from "${DECODER_JUDGED_FROM:-0.1}" $by \
        > "$work/decoder.log" 2>&1
}
[ $second = 0 ] || decoder &
decoding=$!
talker "$work/codec.pt" "$work/speaker.pt" "$work/talker.pt" "$talker_minutes" "${TALKER_HOURS:-20}" $by | tee -a "$work/talker.log"
if [ $second = 1 ]; then wait $decoding; else decoder; fi
last=$work/codec.pt
[ ! -f "$work/decoder.pt" ] || last=$work/decoder.pt
$python -m training.export --codec "$last" --speaker "$work/speaker.pt" \
    --talker "$work/talker.pt" --tokenizer "$work/tokenizer" --out "${OUT_FOLDER:-presets/mini}"

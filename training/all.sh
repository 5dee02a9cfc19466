#!/bin/sh
# Makes Timbre Mini from nothing on a machine with one GPU: sh training/all.sh FOLDER
# FOLDER gets corpus, speech, states and logs; what is there already is used again, so that a
# stopped run goes on. PACKAGES: where flite, wordnet-base and wamerican were unpacked.
set -eu
work=$1
packages=${PACKAGES:-/}
speech_minutes=${SPEECH_MINUTES:-30}   # stop making speech after so long
codec_minutes=${CODEC_MINUTES:-40}
talker_minutes=${TALKER_MINUTES:-40}
python=${PYTHON:-python3}
record=${RECORD---record}              # RECORD= where there is no CUDA
hours=${HOURS:-60}                     # room for speech on the device: 0.17 GB an hour
mkdir -p "$work"
export FLITE_ROOT=$packages
export LD_LIBRARY_PATH="$packages/usr/lib/x86_64-linux-gnu:${LD_LIBRARY_PATH:-}"

[ -f "$work/corpus.json" ] || $python -m training.text --root "$packages" --out "$work/corpus.json"
[ -d "$work/tokenizer" ] || $python -m training.tokenizer --corpus "$work/corpus.json" --out "$work/tokenizer"

# Speech is made beside the training, two cores left free.
workers=$(( $(nproc) > 3 ? $(nproc) - 2 : 1 ))
OMP_NUM_THREADS=1 timeout "${speech_minutes}m" nice $python -m training.speech \
    --corpus "$work/corpus.json" --out "$work/speech" --shards "${SHARDS:-420}" \
    --workers "$workers" --utterances "${UTTERANCES:-160}" > "$work/speech.log" 2>&1 &
maker=$!
trap 'kill $maker 2>/dev/null || true' EXIT

# Speech that the talker is judged by and never learns from.
OMP_NUM_THREADS=1 $python -m training.speech --corpus "$work/corpus.json" --out "$work/aside" \
    --first 100000 --shards 2 --workers 2 --utterances "${UTTERANCES:-160}" > "$work/aside.log" 2>&1 &
aside=$!

# The speaker encoder learns beside the codec.
[ -f "$work/speaker.pt" ] || $python -m training.train_speaker --speech "$work/speech" \
    --out "$work/speaker.pt" --wait-hours "${SPEAKER_HOURS:-6}" --hours "$hours" \
    --steps "${SPEAKER_STEPS:-6000}" > "$work/speaker.log" 2>&1 &
speaker=$!
$python -m training.train_codec --speech "$work/speech" --state "$work/codec.pt" \
    --minutes "$codec_minutes" --hours "$hours" --batch "${CODEC_BATCH:-20}" $record | tee -a "$work/codec.log"
wait $speaker
wait $aside
$python -m training.train_talker --speech "$work/speech" --codec "$work/codec.pt" \
    --speaker "$work/speaker.pt" --tokenizer "$work/tokenizer" --state "$work/talker.pt" \
    --aside "$work/aside" --wait-hours "${TALKER_HOURS:-20}" \
    --rate "${TALKER_RATE:-0.0015}" --dropout "${TALKER_DROPOUT:-0.1}" --guidance "${GUIDANCE:-0.5}" \
    --minutes "$talker_minutes" --hours "$hours" --rows "${TALKER_ROWS:-24576}" $record | tee -a "$work/talker.log"
$python -m training.export --codec "$work/codec.pt" --speaker "$work/speaker.pt" \
    --talker "$work/talker.pt" --tokenizer "$work/tokenizer" --out "${OUT_FOLDER:-presets/mini}"

#!/bin/sh
# Makes Timbre Mini, one step after the other: sh training/recipe.sh FOLDER
#
# A step is skipped once it is done; training that was broken off goes on from its last save. What is
# in FOLDER already is used: texts, kokoro.pt, begin/. On a machine that is only lent: lent.sh.
#
#   PACKAGES  where wordnet-base and wamerican were unpacked (/)
#   SITE      where the teacher's packages are
#   BEGIN     the model whose weights are gone on from (presets/mini); empty: from nothing
#   KEEP      steps that are left out, as BEGIN has them: "codec decoder speaker"
#   PEOPLE    recordings of people for the codec (training.data.recordings pack)
#   MINUTES   that the talker learns (20); codec and decoder learn half of that each, the speaker encoder a sixth
#   HOURS     of speech that a GPU holds (30; 0.17 GB an hour)
#   BESIDE    not empty: steps that need not wait for each other do not. Networks are compiled while speech is still made
#             (each begins with FIRST_HOURS of it, 5), decoder and talker learn at once: of several GPUs the last one has the
#             decoder, the others the talker
#   UNTIL     seconds since 1970 at which every training stops, however long it was to learn; SPEECH: seconds of making
#             speech (30 for each of MINUTES)
#   TILT      how much brighter the decoder gets at the end (0.12)
#   DECODER, TALKER  more arguments of that training: "--batch 12", "--rows 16384 --rate 0.0007"
#   PYTHON, GPUS; TRY, TRY_SPEECH: more arguments of each training, to make it small enough for a try
set -eu
work=$1
. "$(dirname "$0")/steps.sh"
minutes=${MINUTES:-20}

# Texts, and the teacher's phonemes of them; some are held out, to judge by.
made corpus.json training.data.text --root "${PACKAGES:-/}" --out "$work/corpus.json"
made said.json.gz training.teachers.phonemes --corpus "$work/corpus.json" --out "$work/said.json.gz"
made said-aside.json.gz training.teachers.phonemes --corpus "$work/corpus.json" --out "$work/said-aside.json.gz" --held-out
made kokoro.pt training.teachers.kokoro_weights "${SITE:-}" "$work/kokoro.pt"

# Weights to go on from.
begin=${BEGIN-presets/mini}
[ -z "$begin" ] || made begin training.resume join "$begin" training/parts.pt "$work/begin"
[ -d "$work/tokenizer" ] || [ ! -d "$work/begin/tokenizer" ] || cp -r "$work/begin/tokenizer" "$work/tokenizer"
made tokenizer training.tokenizer --corpus "$work/corpus.json" --out "$work/tokenizer"
for name in codec talker; do
    [ -f "$work/$name.pt" ] || [ ! -f "$work/begin/$name.pt" ] || cp "$work/begin/$name.pt" "$work/$name.pt"
done
for name in ${KEEP:-}; do
    [ "$name" != speaker ] || cp "$work/begin/speaker.pt" "$work/speaker.pt"
    [ "$name" != decoder ] || cp "$work/begin/codec.pt" "$work/decoder.pt"
    touch "$work/done/$name"
done

# Speech of the teacher, and some that is judged by and never learned from.
once validation speech said-aside.json.gz validation 90000 --shards 1
spoken() { once speech speech said.json.gz speech 0 --shards 1000 --until $(($(date +%s) + ${SPEECH:-$((30 * minutes))})); }
if [ -n "${BESIDE:-}" ]; then
    spoken &
    bounds="$bounds --wait-hours ${FIRST_HOURS:-5}"
else
    spoken
fi

# The codec; then its decoder, on codes that stay.
people=
if [ -n "${PEOPLE:-}" ]; then
    made people training.data.recordings unpack "$PEOPLE" "$work/people"
    people="--people $work/people --keep $work/begin/codec.pt --batch 9 --adversarial-from 0.02 --rate 0.0004"
fi
once codec trained codec training.train_codec --minutes $((minutes / 2)) $people
decoder() {
    once decoder trained decoder training.train_decoder --codec "$work/codec.pt" --minutes $((minutes / 2)) \
        ${people:+--people "$work/people"} ${DECODER:-}
}
talker() {
    once talker trained talker training.train_talker --codec "$work/codec.pt" --speaker "$work/speaker.pt" \
        --tokenizer "$work/tokenizer" --validation "$work/validation" --self-rollout --minutes "$minutes" ${TALKER:-}
}

# The speaker encoder: told apart where it is new, then towards its targets.
speaker() {
    init=$work/begin/speaker.pt
    if [ ! -f "$init" ]; then
        init=$work/apart.pt
        on 0 training.train_speaker --speech "$work/speech" --out "$init" --minutes $((minutes / 6)) --hours "${HOURS:-30}" ${TRY:-}
    fi
    on 0 training.smooth_speaker --speech "$work/speech" --init "$init" --codec "$work/codec.pt" --out "$work/speaker.pt" \
        --speed 0.25 --microphones --minutes $((minutes / 6)) --hours "${HOURS:-30}" ${TRY:-}
}
once speaker speaker

if [ -n "${BESIDE:-}" ]; then
    (cards=$((gpus - 1)); decoder) &
    decoding=$!
    [ "$gpus" -eq 1 ] || cards=$(seq 0 $((gpus - 2)))
    talker
    wait "$decoding"
else
    decoder
    talker
fi
wait # for speech

# A decoder that was trained is a little dark.
once equalize on 0 training.equalize --state "$work/decoder.pt" --speech "$work/speech" --tilt "${TILT:-0.12}"
made model training.export --codec "$work/decoder.pt" --speaker "$work/speaker.pt" --talker "$work/talker.pt" \
    --tokenizer "$work/tokenizer" --out "$work/model"

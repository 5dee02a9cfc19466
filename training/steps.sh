# What recipe.sh is written in. Sourced, with $work set.
python=${PYTHON:-python3}
mkdir -p "$work/logs" "$work/done"
gpus=${GPUS:-$(nvidia-smi --list-gpus 2> /dev/null | wc -l)}
[ "$gpus" -gt 0 ] || gpus=1
cards=$(seq 0 $((gpus - 1))) # the GPUs that a step is done on
fast="--cuda-graphs --compile"
nvidia-smi > /dev/null 2>&1 || fast=
bounds=${UNTIL:+"--until $UNTIL"}

# FILE COMMAND...: the file or folder of a step that needs no GPU, unless it is there.
made() {
    [ ! -e "$work/$1" ] || return 0
    name=$1
    shift
    echo "$name"
    $python -m "$@" >> "$work/logs/$name.log" 2>&1
}

# STEP COMMAND...: unless it was done.
once() {
    [ ! -f "$work/done/$1" ] || return 0
    step=$1
    shift
    echo "$step"
    "$@"
    touch "$work/done/$step"
}

# GPU MODULE ARGUMENTS...
on() {
    gpu=$1
    shift
    CUDA_VISIBLE_DEVICES=$gpu OMP_NUM_THREADS=4 NCCL_NVLS_ENABLE=0 $python -m "$@" >> "$work/logs/$step$gpu.log" 2>&1
}

# TEXTS FOLDER FIRST OPTIONS...: speech of the teacher, on each GPU; shards are numbered from FIRST on.
speech() {
    texts=$1 folder=$2 first=$3
    shift 3
    for gpu in $cards; do
        on "$gpu" training.teachers.synthesize --teacher "$work/kokoro.pt" --said "$work/$texts" \
            --out "$work/$folder" --first $((first + 1000 * gpu)) "$@" ${TRY_SPEECH:-} &
    done
    wait
    [ -d "$work/$folder" ] || { echo "$folder: no speech was made" >&2 && return 1; }
}

# NAME MODULE ARGUMENTS...: a network trained on all of the cards together; where that fails, on the
# first alone, from the last save. What was broken off goes on in its own schedule.
trained() {
    name=$1 module=$2
    shift 2
    set -- "$module" --speech "$work/speech" --state "$work/$name.pt" --hours "${HOURS:-30}" --save-every 60 $fast $bounds "$@" ${TRY:-}
    [ -f "$work/done/$name.begun" ] || set -- "$@" --restart
    touch "$work/done/$name.begun"
    meeting=$work/$name.meeting
    rm -f "$meeting"
    count=$(echo $cards | wc -w) first=${cards%%[!0-9]*} rank=0 others=
    for gpu in $cards; do
        [ "$rank" -eq 0 ] || { on "$gpu" "$@" --peers "$count" --rank "$rank" --meeting "$meeting" & others="$others $!"; }
        rank=$((rank + 1))
    done
    on "$first" "$@" --peers "$count" --meeting "$meeting" || { echo "$name: once more, alone" && on "$first" "$@"; }
    [ -z "$others" ] || wait $others || true
}

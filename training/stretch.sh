#!/bin/sh
# One stretch of training on a machine that is only lent: sh training/stretch.sh FOLDER OUT SECONDS
# The first call starts all.sh in the background. Every call waits so many seconds, or until that
# is done, then leaves in OUT what is new: weights in pieces of 15 MiB, and the ends of the logs.
# Pieces of an earlier stretch are gone on from when they lie in FOLDER/from at the first call.
set -eu
work=$1 out=$2 seconds=$3
python=${PYTHON:-python3}
parts="codec decoder speaker talker"
mkdir -p "$work" "$out"

if [ ! -f "$work/pid" ]; then
    for name in $parts; do
        [ ! -f "$work/from/$name.pt.00" ] || $python -m training.state join "$work/from/$name.pt" "$work/$name.pt"
    done
    setsid nohup sh training/all.sh "$work" > "$work/all.log" 2>&1 &
    echo $! > "$work/pid"
fi

until=$(($(date +%s) + seconds))
while [ "$(date +%s)" -lt "$until" ] && kill -0 "$(cat "$work/pid")" 2> /dev/null; do sleep 1; done

for name in $parts; do
    state=$work/$name.pt
    if [ -f "$state" ] && { [ ! -f "$work/$name.sent" ] || [ "$state" -nt "$work/$name.sent" ]; }; then
        touch -r "$state" "$work/$name.sent"
        $python -m training.state weights "$state" "$work/small/$name.pt"
        $python -m training.state split "$work/small/$name.pt" "$out"
    fi
done
tail -n 40 "$work"/*.log > "$out/logs.txt"
tail -n 3 "$work"/*.log

#!/bin/sh
# Runs recipe.sh on a machine that is only lent: sh training/lent.sh FOLDER OUT SECONDS
#
# The first call starts it in the background. Every call waits so many seconds, or until it is done, then
# leaves in OUT what is new: weights in half precision in pieces of 15 MiB (`python -m training.state
# join OUT/talker.pt talker.pt` puts them together), and the ends of the logs. The recipe's settings hold.
set -eu
work=$1 out=$2 until=$(($(date +%s) + $3))
python=${PYTHON:-python3}
mkdir -p "$out" "$work/logs" "$work/small"

if [ ! -f "$work/pid" ]; then
    setsid nohup sh "$(dirname "$0")/recipe.sh" "$work" > "$work/logs/recipe.log" 2>&1 &
    echo $! > "$work/pid"
    touch "$work/small/begun"
fi
while [ "$(date +%s)" -lt "$until" ] && kill -0 "$(cat "$work/pid")" 2> /dev/null; do sleep 1; done

for state in "$work"/codec.pt "$work"/decoder.pt "$work"/speaker.pt "$work"/talker.pt; do
    name=$(basename "$state")
    sent=$work/small/$name.sent
    [ -f "$state" ] && [ "$state" -nt "$work/small/begun" ] || continue
    [ ! -f "$sent" ] || [ "$state" -nt "$sent" ] || continue
    touch -r "$state" "$sent"
    $python -m training.state weights "$state" "$work/small/$name"
    $python -m training.state split "$work/small/$name" "$out"
done
tail -n 30 "$work"/logs/*.log > "$out/logs.txt"
tail -n 2 "$work"/logs/*.log

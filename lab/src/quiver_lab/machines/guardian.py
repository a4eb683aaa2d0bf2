"""What watches over a session on another machine, in the shell that every machine has. It lives as long as it
hears from the lab; then, whatever the reason, it ends the session's processes, undoes what is to be undone,
and removes the session's folder."""

from __future__ import annotations

BEAT = "beat"
BEAT_EVERY_S = 4.0
PATIENCE_S = 15
"""A network that is gone for longer ends the session there."""
END_POLITELY_S = 5
CLOSE_TIMEOUT_S = 30.0

SCRIPT = r"""
folder=$1; patience=$2; politely=$3
trap '' HUP INT PIPE
while word=$(timeout "$patience" sh -c 'read -r word && echo "$word"') && [ "$word" = beat ]; do :; done
exec </dev/null >/dev/null 2>&1
each() { for file in "$folder"/*.pid; do [ -e "$file" ] && kill "$1" "$(cat "$file")"; done; }
alive() {
    for file in "$folder"/*.pid; do [ -e "$file" ] && kill -0 "$(cat "$file")" && return 0; done
    return 1
}
each -TERM; each -CONT
tenths=0
while [ "$tenths" -lt "$((politely * 10))" ] && alive; do sleep 0.1; tenths=$((tenths + 1)); done
each -KILL
[ -e "$folder/undo" ] && tac "$folder/undo" | while read -r line; do sh -c "$line" </dev/null; done
rm -rf "$folder"
"""
"""Its standard input is a line `beat` now and then; $1 is the folder, in which NAME.pid has a process's
number and `undo` has shell commands, a line each, to be run from the last to the first."""

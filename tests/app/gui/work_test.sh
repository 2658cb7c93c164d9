#!/bin/bash
# Works in the real window under Xvfb by keyboard and mouse: the first page, opening, a second run, measuring,
# exporting, copying rows, breakpoints that are kept, what if, connecting, and a connection that is lost and found again.
# work_test.sh SHARDSCOPE_GUI MAKE_RECORDING SHARDSCOPE
gui=$(realpath "$1")
make_recording=$(realpath "$2")
shardscope=$(realpath "$3")
. "$(dirname "${BASH_SOURCE[0]}")/window_driver.sh"
recorder=
trap '[ -n "$recorder" ] && kill -9 $recorder 2> /dev/null; finish' EXIT

"$make_recording" "$work/run.zscope" steps=6 || fail "cannot make a recording"
"$make_recording" "$work/other.zscope" steps=5 || fail "cannot make a second recording"
open_display 1600x900

start() { # ARGUMENTS of the window
  rm -f "$work/state.json"
  "$gui" "$@" --size 1600x900 --state-dump "$work/state.json" > "$work/gui.log" 2>&1 &
  window=$!
  for _ in $(seq 200); do [ -f "$work/state.json" ] && break; sleep 0.1; done
  until_holds "s['frames'] > 0" "the window is up"
}
stop() { kill $window; wait $window 2> /dev/null; window=; }
# fill TEXT: in place of what a dialog's field holds, and Enter.
fill() {
  until_holds "'dialog' in s['shows']" "a dialog is open"
  xdotool key ctrl+a; look
  type_text "$1"
  keys Return
}
place() { value "'%d %d' % (s['panels']['$1'][0] + ($2), s['panels']['$1'][1] + ($3))"; }

# Nothing to show: the first page, from which a recording is opened.
start
until_holds "s['start_page'] and 'timeline' not in s['panels']" "without a recording there is the first page"
xdotool key ctrl+o; fill "$work/run.zscope"
until_holds "s['store']['steps'] == 6 and not s['start_page'] and 'timeline' in s['panels']" "a recording is opened from it"

# By keyboard alone: an arrow goes into the list of files, whose first row is the folder above.
mkdir "$work/only" && cp "$work/run.zscope" "$work/only/listed.zscope"
xdotool key ctrl+o; fill "$work/only"
keys Down Down Return
until_holds "s['source'].endswith('only/listed.zscope')" "arrows and Enter open a recording from the list"

# Measured by dragging with Shift in the timeline.
xdotool mousemove $(place timeline 500 200); sleep 0.3
xdotool keydown shift mousedown 1; sleep 0.3
for _ in 1 2 3 4 5 6; do xdotool mousemove_relative 25 0; sleep 0.08; done
xdotool mouseup 1 keyup shift
until_holds "s['measured_ns'] and s['measured_ns'][1] > s['measured_ns'][0]" "a drag with Shift measures"
xdotool key Escape
until_holds "s['measured_ns'] is None" "Escape measures nothing any more"
keys Page_Up; xdotool key bracketleft
until_holds "s['measured_ns'] and s['measured_ns'] == [s['cursor_ns'], s['range_ns'][1]]" "the keyboard measures from the time that is looked at"
xdotool key Escape Escape

# A breakpoint at the selected step; the next one, playing up to it, and kept for the next window.
xdotool mousemove $(value "'%d %d' % (s['panels']['steps'][0] + s['panels']['steps'][2] * 0.6, s['panels']['steps'][1] + s['panels']['steps'][3] * 0.5)"); sleep 0.3
xdotool click 1
until_holds "s['selection']['kind'] == 'step'" "a click on the ruler selects a step"
until_holds "'inspector' in s['panels'] and 'overview' not in s['panels']" "the first selection brings the Inspector"
xdotool key F9
until_holds "len(s['breakpoints']['list']) == 1" "F9 breaks at the selected step"
keys Page_Up Page_Up
xdotool key F8
until_holds "s['breakpoints']['stopped'] == 0" "F8 goes to the next breakpoint"
look; there=$(value "s['cursor_ns']")
keys Left
xdotool key space
until_holds "s['cursor_ns'] == $there and not s['breakpoints']['playing']" "played, the recording stops at the breakpoint"

# With nothing selected the Inspector is empty: what is below it is visible until something is selected again.
xdotool key Escape
until_holds "s['selection']['kind'] == 'none' and 'overview' in s['panels']" "without a selection the Overview is seen again"
xdotool mousemove_relative 3 0; sleep 0.3; xdotool click 1
until_holds "s['selection']['kind'] == 'step' and 'inspector' in s['panels']" "with the next one the Inspector is back"

# The same by way of another layout, in which the selection is taken back.
xdotool key 2
until_holds "s['layout'] == 'Step'" "2 is the layout Step"
xdotool key Escape
until_holds "s['selection']['kind'] == 'none'" "nothing is selected any more"
xdotool key 1
until_holds "s['layout'] == 'Watch' and 'overview' in s['panels'] and 'inspector' not in s['panels']" "each layout puts the Inspector away"

# A trace of what the timeline shows, and the report, from the palette.
# enter TEXT: in place of what the dialog's field holds.
enter() {
  xdotool key ctrl+a; look; xdotool type --delay 20 "$1"
  until_holds "s['shows'].get('dialog') == ['$1']" "the dialog holds $1"
}
written() { for _ in $(seq 100); do [ -s "$1" ] && return 0; sleep 0.1; done; fail "$1 is not written"; }
xdotool key ctrl+g; fill "step 2"
until_holds "s['shown_step'] == 2" "a step is gone to by its number"
palette "export trace chrome"; enter "$work/part.json"
# The second choice below the field is what the timeline shows.
keys Tab Tab space Tab Return
until_holds "'dialog' not in s['shows']" "Export closes the dialog"
written "$work/part.json"
python3 - "$work/part.json" "$work/state.json" << 'PY' || fail "the trace is not of the range that is shown"
import json, sys
spans = [e for e in json.load(open(sys.argv[1]))["traceEvents"] if e.get("ph") == "X"]
begin, end = (t / 1e3 for t in json.load(open(sys.argv[2]))["range_ns"])
outside = [e for e in spans if e["ts"] > end or e["ts"] + e["dur"] < begin]
sys.exit(not spans or bool(outside))
PY
palette "export report"; enter "$work/shown.html"; xdotool key Return
written "$work/shown.html"

# A click on a header sorts a table; its rows are saved in that order.
palette "show buckets"
until_holds "'buckets' in s['panels']" "the panel Buckets"
xdotool mousemove $(place buckets 123 151); look; xdotool click 1; look
xdotool mousemove $(place buckets 300 180); look; xdotool click 3; look
keys Up Return
until_holds "'dialog' in s['shows']" "the last entry of a row's menu saves the rows"
enter "$work/rows.csv"; xdotool key Return
written "$work/rows.csv"
python3 - "$work/rows.csv" << 'PY' || fail "the rows are not sorted by the bucket: $(cat "$work/rows.csv")"
import csv, sys
rows = [int(row["bucket"]) for row in csv.DictReader(open(sys.argv[1]))]
sys.exit(len(rows) < 3 or rows != sorted(rows, reverse=True))
PY

# A marked row is copied by Ctrl+C, with the names of the columns, and pasted as text anywhere.
xdotool mousemove $(place buckets 300 180); look; xdotool click 1; look
with_ctrl() { xdotool keydown ctrl; look; keys "$1"; xdotool keyup ctrl; look; }  # as slow as a hand: ImGui's shortcuts need frames between
with_ctrl c; xdotool key ctrl+f
until_holds "'find' in s['panels']" "Ctrl+F shows the panel Find"
look; with_ctrl v
until_holds "'filled for' in s['find']['words'] and '$(tail -1 "$work/rows.csv" | cut -d, -f4)' in s['find']['words']" "the copied row is pasted"
with_ctrl a; xdotool key BackSpace; sleep 0.3; xdotool key Escape Escape
until_holds "s['find']['words'] == ''" "the field is empty again"

# A second run from the window.
xdotool key ctrl+shift+o; fill "$work/other.zscope"
until_holds "s['other'] and s['other'].endswith('other.zscope') and s['layout'] == 'Compare'" "a second run is opened beside it"

# The next window has the breakpoint.
sleep 2; stop
start "$work/run.zscope"
until_holds "len(s['breakpoints']['list']) == 1 and s['breakpoints']['list'][0][1]" "the breakpoint is kept"

# What if: a box is changed, the run is simulated with it, and what came of it is opened beside the run.
stop
"$shardscope" simulate --layers 4 --width 512 --heads 8 --context 256 --vocab 1000 --ranks 4 --steps 4 \
  --set zero_optimization.reduce_bucket_size=1000000 --set zero_optimization.stage3_prefetch_bucket_size=2000000 \
  -o "$work/sim.zscope" > "$work/sim.log" 2>&1 || fail "cannot simulate a run"
start "$work/sim.zscope"
overlap="s['what_if']['values']['zero_optimization.overlap_comm']"
palette "show what if"
until_holds "'whatif' in s['panels'] and $overlap == 'true'" "the panel What if begins with what is recorded"
xdotool mousemove $(place whatif 213 73); look; xdotool click 1
until_holds "$overlap == 'false'" "a click changes the box"
palette "what if: simulate"
until_holds "s['what_if']['changed_ms'] > 1.2 * s['what_if']['modelled_ms'] > 0" "without overlap the step takes longer"
palette "open beside the run"
until_holds "s['other'] and s['layout'] == 'Compare'" "what was played is opened beside the run"

# Connected by the dialog; then what it is connected to goes away.
port=$(python3 -c "
import socket
s = [socket.socket() for _ in range(3)]
for p in range(20000, 60000, 7):
    try:
        for i, one in enumerate(s): one.bind(('127.0.0.1', p + i))
        print(p); break
    except OSError: s = [socket.socket() for _ in range(3)]")
listening() { for _ in $(seq 100); do (: < "/dev/tcp/127.0.0.1/$port") 2> /dev/null && return 0; sleep 0.1; done; fail "the recorder does not listen"; }
"$shardscope" keys "$work/keys" > /dev/null || fail "cannot make keys"
"$shardscope" keys "$work/others" > /dev/null || fail "cannot make other keys"
"$shardscope" record "$work/live.zscope" --listen "tcp://127.0.0.1:$port" --keys "$work/keys" > "$work/recorder.log" 2>&1 &
recorder=$!
listening
# connect_with KEY_FILE: address, then the field below it.
connect_with() {
  xdotool key ctrl+shift+c
  until_holds "'dialog' in s['shows']" "the dialog to connect"
  xdotool key ctrl+a; look
  type_text "tcp://127.0.0.1:$port"
  keys Tab
  xdotool key ctrl+a; look
  type_text "$1"
  keys Return
}
connect_with "$work/others/view.key"
until_holds "s['live'] and s['source'].endswith(':$port') and s['link'] == 'connecting'" "a key of another collector opens nothing"
connect_with "$work/keys/view.key"
until_holds "s['live'] and s['source'].endswith(':$port')" "the dialog connects"
until_holds "s['link'] == 'live'" "the connection is up"
kill -9 $recorder; wait $recorder 2> /dev/null; recorder=
until_holds "s['link'] == 'lost'" "a lost connection is noticed"
kill -0 $window || fail "the window does not outlive it"
"$shardscope" record "$work/again.zscope" --listen "tcp://127.0.0.1:$port" --keys "$work/keys" > "$work/recorder.log" 2>&1 &
recorder=$!
listening; xdotool key ctrl+shift+r
until_holds "s['link'] == 'live'" "it connects again"
echo "PASS"

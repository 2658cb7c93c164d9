#!/bin/bash
# Drags a panel out of the window with the mouse, at another scale than 1 and with the window not in the corner, uses it
# there, puts it back, and closes one that is out.
# tear_off_test.sh SHARDSCOPE_GUI MAKE_RECORDING
gui=$1
make_recording=$2
. "$(dirname "${BASH_SOURCE[0]}")/window_driver.sh"

"$make_recording" "$work/run.zscope" steps=6 || fail "cannot make a recording"
# A screen this wide is drawn at scale 1.25.
open_display 2600x1400

start() { # OPTIONS
  rm -f "$work/state.json"
  "$gui" "$work/run.zscope" "$@" --state-dump "$work/state.json" > "$work/gui.log" 2>&1 &
  window=$!
  for _ in $(seq 200); do [ -f "$work/state.json" ] && break; sleep 0.1; done
  until_holds "s['frames'] > 0 and s['store']['steps'] == 6" "the recording is on the window"
}
# Names of the windows of the desktop and their places: NAME X Y WIDTH HEIGHT.
windows() {
  for id in $(xdotool search --onlyvisible --name . 2> /dev/null); do
    eval "$(xdotool getwindowgeometry --shell $id)"
    echo "$(xdotool getwindowname $id) $X $Y $WIDTH $HEIGHT"
  done
}
# until_windows COUNT WHAT
until_windows() {
  for _ in $(seq 60); do
    [ "$(windows | wc -l)" = "$1" ] && return 0
    sleep 0.15
  done
  fail "$2 (wanted: $1 windows of the desktop)"
}
# Pixels of the screen of a place in a panel, whose places in the dump are logical ones: PANEL RIGHT DOWN.
point() { value "'%d %d' % ((s['panels']['$1'][0] + $2) * 1.25, (s['panels']['$1'][1] + $3) * 1.25)"; }
# drag X1 Y1 X2 Y2
drag() {
  xdotool mousemove $1 $2; sleep 0.4; xdotool mousedown 1; sleep 0.4
  for i in $(seq 12); do
    xdotool mousemove $(($1 + ($3 - $1) * i / 12)) $(($2 + ($4 - $2) * i / 12)); sleep 0.12
  done
  sleep 0.8; xdotool mouseup 1; sleep 0.8
}

start --size 1400x900
xdotool windowmove $(xdotool search --onlyvisible --name Shardscope) 200 150
sleep 0.5; xdotool mousemove 700 420; sleep 0.3
until_holds "s['panels']['top'][:2] == [160, 120]" "the window has moved"
until_windows 1 "the window is alone"

# Out: a window of the desktop, with the panel's name, where the mouse let go.
drag $(point memory 30 15) 2000 600
until_windows 2 "the panel is a window of its own"
read -r name x y width height < <(windows | grep -v "Shardscope")
[ "$name" = Memory ] || fail "the window has the panel's name, not $name"
[ $((x > 1900 && x < 2010 && y > 540 && y < 610)) = 1 ] || fail "the window is where it was let go, not at $x $y"
until_holds "s['panels']['memory'][0] > 1500" "the panel is drawn there"
until_holds "s['panels']['partition'][2] > 800" "what was beside it has its room"

# In use: its curve shows the time under the pointer to all panels, its keys are the window's.
xdotool mousemove $(point memory 150 80); sleep 0.3
until_holds "s['hover_ns'] is not None" "the pointer over its curve is a time"
[ "$(windows | wc -l)" = 2 ] || fail "the tool tip opened a window"
xdotool key t
until_holds "s['theme'] == 'light'" "a key that it is given is the window's"
xdotool mousemove 700 420; sleep 0.3; xdotool key t
until_holds "s['theme'] == 'dark'" "the window has the keyboard again"

# Moved as a whole, then into the window again, as a tab.
drag $((x + 36)) $((y + 15)) 1700 1200
read -r name x y width height < <(windows | grep -v "Shardscope")
[ $((x > 1600 && x < 1710 && y > 1140 && y < 1210)) = 1 ] || fail "the window goes along with the mouse, not to $x $y"
read -r to_x to_y < <(value "'%d %d' % tuple((s['panels']['partition'][i] + s['panels']['partition'][i + 2] / 2 + (-13 if i else 0)) * 1.25 for i in (0, 1))")
drag $((x + 36)) $((y + 15)) $to_x $to_y
until_windows 1 "the panel is in the window again"
until_holds "s['panels']['memory'][0] < 1280 and s['panels']['memory'][2] > 800" "it is a tab in the place it was dropped on"

# Where a panel was is kept; one that is out goes with its window's cross.
drag $(point findings 30 15) 2000 300
until_windows 2 "another panel is out"
sleep 1.5; kill $window; wait $window 2> /dev/null
start --size 1400x900
until_windows 2 "it is out again when the program starts anew"
read -r name x y width height < <(windows | grep -v "Shardscope")
[ "$name" = Findings ] || fail "it is the panel that was out, not $name"
xdotool mousemove $((x + width - 18)) $((y + 16)); sleep 0.4; xdotool click 1
until_windows 1 "its cross closes it"
until_holds "'findings' not in s['panels']" "the panel is closed"
kill -0 $window || fail "the window ended by itself"

# The window itself is where the last one was, with its size; a given size is that.
xdotool windowsize $(xdotool search --onlyvisible --name Shardscope) 1300 820
xdotool windowmove $(xdotool search --onlyvisible --name Shardscope) 310 270
sleep 2.5; kill $window; wait $window 2> /dev/null
start
read -r place < <(windows | sed 's/.* \([0-9-]* [0-9-]* [0-9]* [0-9]*\)$/\1/')
[ "$place" = "310 270 1300 820" ] || fail "the window is not where the last one was, but at $place"
kill $window; wait $window 2> /dev/null
start --size 1000x700
windows | grep -q " 1000 700$" || fail "--size is the size, not $(windows)"
echo "PASS"

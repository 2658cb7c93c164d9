#!/bin/bash
# Drives the real window under Xvfb with xdotool and checks what the model layer believes.
# window_test.sh SHARDSCOPE_GUI MAKE_RECORDING
gui=$1
make_recording=$2
. "$(dirname "${BASH_SOURCE[0]}")/window_driver.sh"

"$make_recording" "$work/run.zscope" steps=6 || fail "cannot make a recording"

# Without a display the window says so and leaves with 2.
env -u DISPLAY -u WAYLAND_DISPLAY "$gui" "$work/run.zscope" > "$work/out" 2>&1
[ $? -eq 2 ] || fail "no display must end with 2: $(cat "$work/out")"
grep -q "no display" "$work/out" || fail "no display must be named: $(cat "$work/out")"

open_display 1600x900

"$gui" "$work/run.zscope" --size 1600x900 --state-dump "$work/state.json" > "$work/gui.log" 2>&1 &
window=$!

for _ in $(seq 200); do [ -f "$work/state.json" ] && break; sleep 0.1; done
until_holds "s['frames'] > 0 and s['store']['steps'] == 6" "the recording is on the window"
kill -0 $window || fail "the window does not stay"

# Drawn only when something changes.
sleep 1
look
frames=$(value "s['frames']")
sleep 2
look
[ "$(value "s['frames']")" = "$frames" ] || fail "frames are drawn though nothing changes: $frames, then $(value "s['frames']")"

panel_point() { # PANEL FRACTION_X FRACTION_Y
  value "'%d %d' % (s['panels']['$1'][0] + s['panels']['$1'][2] * $2, s['panels']['$1'][1] + s['panels']['$1'][3] * $3)"
}
move_to() { xdotool mousemove $(panel_point "$1" "$2" "$3"); look; }

# Zoom at the pointer with the wheel, over the compute lanes.
length=$(value "s['range_ns'][1] - s['range_ns'][0]")
move_to timeline 0.5 0.4
xdotool click 4 click 4 click 4
until_holds "s['range_ns'][1] - s['range_ns'][0] < $length * 0.8" "the wheel zooms in"

# Pan by dragging.
begin=$(value "s['range_ns'][0]")
move_to timeline 0.6 0.5
xdotool mousedown 1; sleep 0.2
for _ in 1 2 3 4 5 6; do xdotool mousemove_relative -- -25 0; sleep 0.05; done
xdotool mouseup 1
until_holds "s['range_ns'][0] > $begin" "dragging to the left moves later times in"

# Fit with the keyboard.
xdotool key f
until_holds "s['range_ns'][0] <= 0 and s['range_ns'][1] >= s['store']['end_ns']" "F fits the whole run"

# A click on a span of the timeline selects it; a click in the map selects a parameter.
move_to timeline 0.4 0.235
xdotool click 1
until_holds "s['selection']['kind'] != 'none'" "a click on a span selects it"
xdotool key Escape
until_holds "s['selection']['kind'] == 'none'" "Escape clears the selection"
move_to partition 0.5 0.3
xdotool click 1
until_holds "s['selection']['kind'] == 'param' and s['selection']['name']" "a click in the map selects a parameter"

# A window whose process was stopped is given all that was done meanwhile at once. It shows what that leads to, the
# time under the pointer too, before the pointer moves again: a picture then is the one after it has.
kill -STOP $window
xdotool mousemove $(panel_point timeline 0.6 0.235) click 1 mousemove $(panel_point timeline 0.3 0.5)
sleep 0.2; kill -CONT $window
until_holds "s['selection']['kind'] not in ('none', 'param')" "a click while the window was stopped selects a span"
until_holds "s['hover_ns'] is not None and s['hover_ns'] < s['cursor_ns']" "the time under the pointer is left of the click"
look
still=$(value "s['hover_ns'], s['selection'], s['cursor_ns']")
xdotool mousemove_relative 1 0; sleep 0.3; xdotool mousemove_relative -- -1 0; look
[ "$(value "s['hover_ns'], s['selection'], s['cursor_ns']")" = "$still" ] || fail "a move there and back changes what is shown: $still"

# Stepping along the gates.
xdotool key Escape Left
until_holds "s['cursor_ns'] is not None" "stepping back sets the cursor"
cursor=$(value "s['cursor_ns']")
xdotool key Left Left Left
until_holds "s['cursor_ns'] < $cursor" "stepping back moves it earlier"
# Every key of the burst must have arrived before the place is noted.
look
back=$(value "s['cursor_ns']")
xdotool key Right
until_holds "s['cursor_ns'] > $back" "stepping forward moves it later"

# Layouts and theme.
xdotool key 2
until_holds "s['layout'] == 'Step' and 'stepper' in s['panels']" "2 is the Step layout"
xdotool key 3
until_holds "s['layout'] == 'Memory'" "3 is the Memory layout"
xdotool key t
until_holds "s['theme'] == 'light'" "T changes the theme"
xdotool key 1
until_holds "s['layout'] == 'Watch'" "1 is the Watch layout"

# A click on the step ruler goes to that step.
move_to steps 0.11 0.5
xdotool click 1
until_holds "s['selection']['kind'] == 'step'" "a click on the ruler selects a step"

# A rank is dragged by its name to another place, put back, and moved by keys; the next window has it there.
palette "expand ranks"
until_holds "len(s['expanded_ranks']) == 4" "the palette shows the lanes of every rank"
palette "collapse ranks"
until_holds "s['expanded_ranks'] == []" "and hides them"
rank_name() { value "'%d %d' % (s['panels']['timeline'][0] + 60, s['panels']['timeline'][1] + 65 + 24 * $1)"; } # of rows without lanes
xdotool mousemove $(rank_name 3); sleep 0.3; xdotool mousedown 1; sleep 0.3
for _ in $(seq 12); do xdotool mousemove_relative -- 0 -5; sleep 0.05; done
sleep 0.3; xdotool mouseup 1
until_holds "s['rank_order'] == [0, 3, 1, 2]" "rank 3 is dropped between 0 and 1"
sleep 1; xdotool key ctrl+z
until_holds "s['rank_order'] == []" "Ctrl+Z puts it back"
sleep 1; xdotool mousemove $(rank_name 0); sleep 0.3; xdotool click 1
until_holds "s['selection']['kind'] == 'rank' and s['selection']['rank'] == 0 and s['expanded_ranks'] == []" "a click on its name selects a rank"
xdotool key alt+Down
until_holds "s['rank_order'] == [1, 0, 2, 3]" "Alt+Down moves the selected rank"

# Panels are moved with the mouse: the edge between two, then a title out of its place.
drag_to() { # FROM_X FROM_Y STEPS DX DY: presses there and moves on
  xdotool mousemove "$1" "$2"; sleep 0.3
  xdotool mousedown 1; sleep 0.3
  for _ in $(seq "$3"); do xdotool mousemove_relative -- "$4" "$5"; sleep 0.08; done
  sleep 0.3; xdotool mouseup 1; sleep 0.3
}
width() { value "s['panels']['$1'][2]"; }
findings=$(width findings)
drag_to $(value "'%d %d' % (s['panels']['findings'][0] - 1, s['panels']['findings'][1] + 200)") 10 -12 0
until_holds "s['panels']['findings'][2] > $findings + 90" "dragging the edge of a panel makes it wider"
partition=$(width partition)
drag_to $(value "'%d %d' % (s['panels']['memory'][0] + 25, s['panels']['memory'][1] + 12)") 10 -35 -30
until_holds "s['panels']['partition'][2] > $partition * 1.5" "a panel dragged by its title leaves its place to its neighbour"

# A window that is opened later has them where they were.
xdotool mousemove_relative 3 3; sleep 1.5; xdotool mousemove_relative 3 3; sleep 0.5
partition=$(width partition); memory=$(value "s['panels']['memory']")
kill $window; wait $window 2> /dev/null; rm -f "$work/state.json"
"$gui" "$work/run.zscope" --size 1600x900 --state-dump "$work/state.json" > "$work/gui.log" 2>&1 &
window=$!
for _ in $(seq 200); do [ -f "$work/state.json" ] && break; sleep 0.1; done
until_holds "abs(s['panels']['partition'][2] - $partition) < 3 and s['panels']['memory'] == $memory" "panels are where the last window had them"
until_holds "s['rank_order'] == [1, 0, 2, 3]" "ranks are where the last window had them"
palette "ranks by number"
until_holds "s['rank_order'] == []" "they are sorted again"

# A settings file that was changed is not trusted.
kill $window; wait $window 2> /dev/null; rm -f "$work/state.json"
sed -i 's/^Size=.*/Size=0,0/' "$work/config/shardscope/window.ini"
"$gui" "$work/run.zscope" --size 1600x900 --state-dump "$work/state.json" > "$work/gui.log" 2>&1 &
window=$!
for _ in $(seq 200); do [ -f "$work/state.json" ] && break; sleep 0.1; done
until_holds "s['panels']['partition'][2] < $partition - 90" "a damaged settings file leaves the layout as it was at first"
grep -q "window.ini is damaged" "$work/gui.log" || fail "a damaged settings file must be named"

# The menu at a panel's title, by keys: the other Enter picks as well.
xdotool mousemove $(value "'%d %d' % (s['panels']['timeline'][0] + 25, s['panels']['timeline'][1] + 10)"); sleep 0.2
xdotool click 1; look
keys Down Down Down Down
xdotool key KP_Enter
until_holds "'timeline' not in s['panels'] and 'communication' in s['panels']" "another panel is shown in its place"

# A double click in the map follows the parameter under the pointer, on every rank.
until_holds "s['rows']['params'] == []" "no parameter is followed"
move_to partition 0.5 0.4
# On a busy machine frames may be further apart than the two clicks of a double click.
for _ in 1 2 3 4; do
  xdotool click --repeat 2 --delay 60 1; look
  [ "$(value "len(s['rows']['params'])")" = 1 ] && break
  sleep 0.5
done
until_holds "len(s['rows']['params']) == 1 and s['rows']['params'][0] == s['selection']['name']" "a double click in the map follows the parameter"

# Found by the keyboard alone: words, the first hit, the next, and back.
keys Escape Escape Escape  # as a burst, ImGui would take the last of them after the field has the keyboard
xdotool key ctrl+f
until_holds "'find' in s['panels']" "Ctrl+F shows the panel Find"
type_text "all-gather"
until_holds "s['find']['words'] == 'all-gather'" "the field has the keyboard"
until_holds "s['find']['done'] and 0 < s['find']['hits'] == s['find']['listed'] == s['find']['counted']" "all spans are searched, listed and counted"
xdotool key Return
until_holds "s['selection']['kind'] == 'collective' and s['cursor_ns'] is not None" "Enter goes to the first hit"
until_holds "s['range_ns'][0] <= s['cursor_ns'] < s['range_ns'][1]" "the hit is in view"
sleep 1; first=$(value "s['cursor_ns']")
xdotool key F3 F3 F3
until_holds "s['cursor_ns'] > $first and s['selection']['kind'] == 'collective'" "F3 goes to later hits"
sleep 0.7; look; third=$(value "s['cursor_ns']")
xdotool key shift+F3
until_holds "s['cursor_ns'] < $third and s['selection']['kind'] == 'collective'" "Shift+F3 goes back"
sleep 0.7; look; second=$(value "s['cursor_ns']")
xdotool key shift+F3 shift+F3 shift+F3
until_holds "s['cursor_ns'] == $first" "at the first hit it stays"
sleep 1; xdotool key alt+Left
until_holds "s['cursor_ns'] == $second" "the place before comes back"

# The Inspector shows what is related to the found gather; ranks by their computation.
for _ in $(seq 12); do keys F3; done  # the first ones are for no module
until_holds "s['related'] and 'inspector' in s['panels']" "the selected gather is related to what waits for it or uses it"
palette "ranks by comp"
until_holds "s['rank_order'] and s['rank_order'][0] == 2" "the straggler is at the top"

# The flame view: what is clicked there is selected in the timeline.
keys Escape
palette "flame"
until_holds "'flame' in s['panels']" "the palette shows the panel Flame"
until_holds "s['selection']['kind'] == 'none'" "nothing is selected"
look; xdotool mousemove $(value "'%d %d' % (s['panels']['flame'][0] + s['panels']['flame'][2] * 0.3, s['panels']['flame'][1] + 87)"); look; xdotool click 1
until_holds "s['selection']['kind'] != 'none'" "a click on a box selects the longest span of it"

# Notes: made, listed, kept beside the recording, deleted and brought back; a broken file is named and kept.
keys b
type_text "first gather, late"
xdotool key Return
until_holds "[n[2] for n in s['notes']['list']] == ['first gather, late']" "B notes the time that is looked at"
until_holds "s['notes']['list'][0][0] == s['cursor_ns']" "the note is of that time"
[ "$(grep -c "first gather, late" "$work/run.zscope.notes.json")" = 1 ] || fail "the note is beside the recording"
keys Page_Down b; type_text "next"; xdotool key Return
until_holds "len(s['notes']['list']) == 2" "a second note"
palette "notes"
until_holds "'notes' in s['panels']" "the palette shows the panel Notes"
look; xdotool mousemove $(value "'%d %d' % (s['panels']['notes'][0] + 340, s['panels']['notes'][1] + 64)"); look; xdotool click 1
until_holds "s['cursor_ns'] == s['notes']['list'][0][0]" "a click on a note goes there"
xdotool key shift+b
until_holds "s['cursor_ns'] == s['notes']['list'][1][0]" "Shift+B goes to the next note"
xdotool key alt+b
until_holds "s['cursor_ns'] == s['notes']['list'][0][0]" "Alt+B goes to the note before"
xdotool click 1; look  # a release of Alt may have taken the keyboard to the menus
xdotool key F2
until_holds "'dialog' in s['panels']" "F2 opens the chosen note"
keys End; type_text "!"; xdotool key Return
until_holds "s['notes']['list'][0][2] == 'first gather, late!'" "F2 changes the chosen note"
xdotool key Delete
until_holds "[n[2] for n in s['notes']['list']] == ['next']" "Delete deletes the chosen note"
[ "$(grep -c "first gather" "$work/run.zscope.notes.json")" = 0 ] || fail "the deleted note is still in the file"
kill $window; wait $window 2> /dev/null; rm -f "$work/state.json"
"$gui" "$work/run.zscope" --size 1600x900 --state-dump "$work/state.json" > "$work/gui.log" 2>&1 &
window=$!
for _ in $(seq 200); do [ -f "$work/state.json" ] && break; sleep 0.1; done
until_holds "[n[2] for n in s['notes']['list']] == ['next'] and not s['notes']['problem']" "the next window has the notes of the last"
kill $window; wait $window 2> /dev/null; rm -f "$work/state.json"
echo '{"notes": [' > "$work/run.zscope.notes.json"
"$gui" "$work/run.zscope" --size 1600x900 --state-dump "$work/state.json" > "$work/gui.log" 2>&1 &
window=$!
for _ in $(seq 200); do [ -f "$work/state.json" ] && break; sleep 0.1; done
until_holds "'is no JSON' in s['notes']['problem']" "a broken file of notes is named"
keys b; type_text "again"; xdotool key Return
until_holds "[n[2] for n in s['notes']['list']] == ['again']" "notes can be made all the same"
grep -q '^{"notes": \[$' "$work/run.zscope.notes.json.unreadable" || fail "the broken file is kept"

# With the keyboard alone: to a button of the Overview's title line, and to a choice by its name.
press() { xdotool keydown $1; look; xdotool keyup $1; look; }  # ImGui's repeat and focus need frames
keys Escape Escape
palette "show overview"
until_holds "s['shows']['overview'] == ['linear']" "curves are linear"
for _ in $(seq 12); do
  press Tab; look
  [ "$(value "s['shows']['keyboard'][0]")" = log ] && break
done
press Return
until_holds "s['shows']['overview'] == ['log']" "Tab comes to the button that Enter presses"
keys Escape; palette "overview linear"
until_holds "s['shows']['overview'] == ['linear']" "the palette has the panel's choices by their names"

# A run to look at, for who has none: simulated, opened, and removed with the window.
palette "sample run"
until_holds "s['store']['steps'] == 8 and s['store']['ranks'] == 4" "a sample run is simulated and opened"
ls "${TMPDIR:-/tmp}"/shardscope-sample-$window-0.zscope > /dev/null || fail "the sample run is a file"
kill -0 $window || fail "the window ended by itself"
sleep 1; xdotool key Return; sleep 0.5; xdotool key Escape; sleep 0.5; xdotool key ctrl+q
for _ in $(seq 50); do kill -0 $window 2> /dev/null || break; sleep 0.1; done
[ ! -e "${TMPDIR:-/tmp}"/shardscope-sample-$window-0.zscope ] || fail "the sample run is left behind"
echo "PASS"

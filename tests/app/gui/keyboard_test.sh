#!/bin/bash
# Goes through every panel of the real window with the keyboard alone and does something in each.
# keyboard_test.sh SHARDSCOPE_GUI MAKE_RECORDING
gui=$1
make_recording=$2
. "$(dirname "${BASH_SOURCE[0]}")/window_driver.sh"

"$make_recording" "$work/run.zscope" steps=6 || fail "cannot make a recording"
"$make_recording" "$work/other.zscope" steps=6 prefetch=0 || fail "cannot make a second recording"
open_display 1600x900
"$gui" "$work/run.zscope" "$work/other.zscope" --layout Step --size 1600x900 --state-dump "$work/state.json" > "$work/gui.log" 2>&1 &
window=$!
for _ in $(seq 200); do [ -f "$work/state.json" ] && break; sleep 0.1; done
until_holds "s['frames'] > 0 and s['store']['steps'] == 6 and {'timeline', 'partition', 'stepper'} <= set(s['panels'])" "the recording is on the window"

# Shows the panel by its name and moves the keyboard there.
panel() { palette "show $2"; until_holds "'$1' in s['panels'] and s.get('focus') == '$1'" "the panel $2 has the keyboard"; keys Tab; }
at() { value "s['shows']['keyboard'][0]"; }
# Arrows into the list of the panel.
enter_list() {
  for _ in 1 2 3 4 5 6 7 8; do
    keys Down; look
    case "$(at)" in "row "*) return 0 ;; esac
  done
  fail "arrows do not enter the list of $1; they are at '$(at)'"
}
# tab_to LABEL: moves the keyboard's cursor there.
tab_to() {
  for _ in $(seq 60); do
    look
    [ "$(at)" = "$1" ] && return 0
    keys Tab
  done
  fail "Tab does not reach '$1'; it is at '$(at)'"
}

# Every panel that the layout shows and the bars are reached in turn, and the other way.
shown=$(value "len([n for n in s['panels'] if n in ('timeline', 'partition', 'stepper', 'memory', 'overview', 'inspector', 'findings', 'buckets')])")
keys F6; until_holds "s.get('focus')" "F6 moves the keyboard to a panel"
first=$(value "s['focus']")
for _ in $(seq $((shown + 1))); do
  before=$(value "s['focus']")
  keys F6; until_holds "s.get('focus') not in (None, '$before')" "F6 goes on from $before"
  value "s['focus']" >> "$work/visited"
done
[ "$(sort -u "$work/visited" | wc -l)" -ge $((shown + 1)) ] || fail "F6 visits $(tr '\n' ' ' < "$work/visited"), not all of $shown panels and the bars"
grep -q "^steps$" "$work/visited" || fail "F6 does not reach the bars and the step ruler"

# The menus: Run, its first command plays the recording.
keys alt
keys Right Right Right Down
keys Return
until_holds "s['breakpoints']['playing'] or s['cursor_ns'] is not None" "a command of a menu"
keys Escape
[ "$(value "s['breakpoints']['playing']")" = True ] && keys Escape space
until_holds "not s['breakpoints']['playing']" "space stops playing"

panel timeline timeline
tab_to "ranks and lanes"
keys Down Down Down Left
until_holds "s['selection']['kind'] != 'none' and s['cursor_ns'] is not None" "an arrow selects a span of a lane"
cursor=$(value "s['cursor_ns']")
keys Left
until_holds "s['cursor_ns'] < $cursor" "the span before"
keys Right
until_holds "s['cursor_ns'] == $cursor" "and the next"
until_holds "s['focus'] == 'timeline'" "the timeline keeps the keyboard though the Inspector opens"
# The tool tip of the selected span, of the one before, and of another lane.
tip="s['shows'].get('tip', [''])[0]"
keys F4
until_holds "'; rank %d, ' % s['selection']['rank'] in $tip and '; begin: ' in $tip" "F4 shows the tool tip of the span"
before=$(value "hash($tip)")
keys Left
until_holds "$tip and hash($tip) != $before" "it follows the keyboard"
before=$(value "hash($tip)")
xdotool keydown ctrl; look
keys Up Up Up Up
xdotool keyup ctrl
until_holds "hash($tip) != $before" "Ctrl and the arrows move it to another lane"
keys Escape
until_holds "'tip' not in s['shows'] and s['focus'] == 'timeline' and s['shows']['keyboard'] == ['ranks and lanes']" "Escape ends it alone"
# A menu ends it, and Escape is the menu's.
keys F4
until_holds "'tip' in s['shows']" "F4 shows it again"
keys Return
until_holds "'tip' not in s['shows']" "a menu ends it"
cursor=$(value "s['cursor_ns']")
keys Escape
until_holds "s['selection']['kind'] == 'span'" "Escape closes the menu alone"
keys Right
until_holds "s['cursor_ns'] > $cursor" "the arrows are the timeline's again"

# Levels of a lane are hidden from its menu, and shown again by an undo.
until_holds "s['rows']['crops'] == ''" "no level is hidden"
keys Escape Escape  # without a span Enter opens the menu of the lane
panel timeline timeline
tab_to "ranks and lanes"
keys Return Down Return
until_holds "s['rows']['crops'].endswith(':1')" "only the outermost level is shown"
sleep 0.7  # an entry of the history is a place that has stood for a while
keys ctrl+z
until_holds "s['rows']['crops'] == ''" "Ctrl+Z shows the others again"
keys Right
until_holds "s['selection']['kind'] != 'none' and s['cursor_ns'] is not None" "the lane still has the keyboard"

panel partition "partition map"
tab_to "parameters and ranks"
keys Right Down
until_holds "s['selection']['kind'] == 'param' and s['selection']['rank'] == 1" "arrows select a parameter on a rank"
param=$(value "s['selection']['param']")
keys Right
until_holds "s['selection']['param'] == $param + 1" "the parameter beside it"
keys F4
until_holds "s['selection']['name'] in $tip" "the tool tip of its cell"
keys F4
until_holds "'tip' not in s['shows']" "F4 ends it as well"
keys Return
until_holds "s['rows']['params'] == [s['selection']['name']]" "Enter follows it on the timeline"

panel memory memory
tab_to "memory over time"
cursor=$(value "s['cursor_ns']")
keys Left
until_holds "s['cursor_ns'] < $cursor" "an arrow moves the cursor"

panel overview overview
tab_to "Loss"
step=$(value "s['shown_step']")
keys Left
until_holds "s['selection']['kind'] == 'step'" "an arrow goes to the step beside"
keys F4
until_holds "$tip.startswith('step %d;' % s['shown_step'])" "the values of the step"
keys Escape
# Linked to the timeline: its menu shows the whole run in both.
palette "link plots per step to the timeline"
panel overview overview
tab_to "Loss"
until_holds "s['range_ns'][0] > 0" "a part of the run before"
keys Return Down Down Down Return
until_holds "s['range_ns'][0] <= 0 and s['range_ns'][1] >= s['store']['end_ns']" "All steps, of the timeline"
palette "link plots per step to the timeline"
panel overview overview
tab_to "log"
keys Return
until_holds "s['shows']['overview'] == ['log']" "a choice in a title line"

panel inspector inspector
tab_to "Clear"
keys Return
until_holds "s['selection']['kind'] == 'none'" "the Inspector's button clears the selection"

keys Escape Escape Escape
until_holds "s['selection']['kind'] == 'none' and s['cursor_ns'] is None" "no time is looked at before"
panel findings findings
enter_list findings
keys F4
until_holds "$tip" "the tool tip of a row"
keys F4 Return
until_holds "s['selection']['kind'] != 'none' or s['cursor_ns'] is not None" "Enter goes to a finding"
keys Escape

# Choices in title lines: in a wide panel a button for each.
panel communication communication
tab_to "waits"
keys Return
until_holds "'waits' in s['shows']['communication']" "Communication shows the waits"

panel critical_path "critical path"
enter_list "the critical path"
keys Escape

panel stepper stepper
tab_to "< module"
cursor=$(value "s['cursor_ns']")
keys Return
until_holds "s['cursor_ns'] != $cursor" "a button of the Stepper moves the cursor"

# In a narrow one the last of them is a menu.
panel compare compare
tab_to "all"
keys Return Down Down Return
until_holds "'table' in s['shows']['compare']" "Compare shows the table alone"

panel messages messages
enter_list messages
keys Return
until_holds "s['cursor_ns'] == 0" "Enter goes to the time of a message"
keys Escape

panel buckets buckets
keys f
enter_list flushes
keys Return
until_holds "s['cursor_ns'] > 0" "Enter goes to a flush"
keys Escape

keys ctrl+f
until_holds "s.get('focus') == 'find'" "the panel Find has the keyboard"
type_text "reduce"
until_holds "s['find']['words'] == 'reduce' and s['find']['done'] and s['find']['hits'] > 0" "Find has the words"
keys Return
until_holds "s['selection']['kind'] != 'none'" "Enter goes to a hit"

panel statistics statistics
tab_to "histogram"
keys Right Right Right Return
until_holds "s['find']['filtered']" "Enter on a bar shows its spans only"

keys Escape
until_holds "s['selection']['kind'] == 'none'" "nothing is selected before"
panel flame flame
keys Down Down Return
until_holds "s['selection']['kind'] != 'none'" "Enter on a box of the flame view"

panel lecture lecture
tab_to ">"
cursor=$(value "s['cursor_ns']")
keys Return
until_holds "s['cursor_ns'] != $cursor" "the next scene of the lecture"

panel notes notes
tab_to "New"
keys Return
until_holds "'dialog' in s['panels']" "the dialog of a note opens"
type_text "slow"
keys Return
until_holds "[n[2] for n in s['notes']['list']] == ['slow']" "a note is written"
enter_list notes
keys Return F2
keys Tab ctrl+a; type_text "12.5 ms"; keys Tab ctrl+a; type_text "20 ms"; keys Return
until_holds "s['notes']['list'] == [[12500000, 20000000, 'slow']]" "begin and end of the note are changed"
grep -q 12500000 "$work/run.zscope.notes.json" || fail "the changed time is beside the recording"
keys Escape  # leaves the list
panel notes notes
tab_to "Undo change"
keys Return
until_holds "s['notes']['list'][0][0] != 12500000" "the change is undone"

panel trace_info "trace info"
tab_to "Copy"
keys Return
until_holds "s['shows']['status'] == ['Copied the trace info']" "Trace info is copied"

panel whatif "what if"
before=$(value "s['what_if']['values']")
for _ in 1 2 3 4; do  # a list, a check box or a slider: whichever is first
  keys Return Up Return
  [ "$(value "s['what_if']['values']")" != "$before" ] && break
  keys Tab
done
until_holds "s['what_if']['values'] != $before" "a setting of What if is changed"
keys Escape Escape Escape

panel options options
keys Tab space
until_holds "'modules' in s['hidden'] or 'waits' in s['hidden']" "an option is changed"

# The panel that has the keyboard: wider, a tab of its neighbour, out of the tabs, and in a window of its own.
keys Escape Escape 1
until_holds "s['layout'] == 'Watch'" "the layout Watch"
rect() { value "s['panels']['$1'][$2]"; }
# A click ends the tool tip, and is where the mouse is: in another panel.
until_holds "{'timeline', 'memory'} <= set(s['panels'])" "two panels"
xdotool mousemove $(value "'%d %d' % (s['panels']['memory'][0] + s['panels']['memory'][2] * 0.6, s['panels']['memory'][1] + s['panels']['memory'][3] * 0.6)")
panel timeline timeline
tab_to "ranks and lanes"
keys F4
until_holds "'tip' in s['shows'] and s['focus'] == 'timeline'" "a tool tip in the timeline"
xdotool click 1
until_holds "'tip' not in s['shows'] and s['focus'] == 'memory'" "a click where the mouse is"
panel memory memory
width=$(rect memory 2)
keys alt+shift+Right
until_holds "s['panels']['memory'][2] > $width + 20" "a key makes the panel wider"
keys ctrl+shift+Left
until_holds "'partition' not in s['panels'] and s.get('focus') == 'memory'" "it is a tab before its neighbour"
palette "panel out of its tabs above"
until_holds "'partition' in s['panels'] and s['panels']['memory'][1] < s['panels']['partition'][1] and s['panels']['memory'][0] == s['panels']['partition'][0]" "it is above its neighbour"
height=$(rect partition 3)
keys ctrl+shift+w
until_holds "s.get('focus') == 'memory' and s['panels']['partition'][3] > $height + 50" "it has left its place"
left=$(rect memory 0)
keys ctrl+shift+Right
until_holds "s['panels']['memory'][0] > $left + 30" "a key moves its window"
keys ctrl+shift+w
until_holds "s.get('focus') == 'memory'" "it is back among the tabs"

# Without a live run these two only say so.
panel connection connection
panel why "why it hangs"

echo "every panel by the keyboard alone"

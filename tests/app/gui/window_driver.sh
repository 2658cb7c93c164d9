# What the tests of a real window share: Xvfb, the program's state, an end that leaves nothing. Sourced; $window is the
# program that is driven, $gui and $make_recording come from the test's arguments.
set -u
for tool in Xvfb xdotool; do
  if ! command -v $tool > /dev/null; then
    echo "SKIP: $tool is not installed (apt-get install xvfb xdotool)"
    exit 77
  fi
done
work=$(mktemp -d)
export XDG_CONFIG_HOME=$work/config  # layouts of this window, not of who runs the test
xvfb= window=
finish() {
  [ -n "${evaluator_PID:-}" ] && kill $evaluator_PID 2> /dev/null
  [ -n "$window" ] && kill $window 2> /dev/null
  [ -n "$xvfb" ] && kill $xvfb 2> /dev/null
  wait 2> /dev/null
  rm -rf "$work"
}
trap finish EXIT
fail() {
  echo "FAIL: $1"
  [ -f "$work/state.json" ] && cat "$work/state.json"
  cat "$work/gui.log" 2> /dev/null
  exit 1
}
# open_display WIDTHxHEIGHT: the server picks a free number itself, so that tests can run beside one another.
open_display() {
  Xvfb -displayfd 3 -screen 0 "$1x24" -nolisten tcp 3> "$work/display" 2> /dev/null &
  xvfb=$!
  for _ in $(seq 100); do [ -s "$work/display" ] && break; sleep 0.1; done
  [ -s "$work/display" ] || fail "Xvfb does not start"
  export DISPLAY=:$(cat "$work/display")
  unset WAYLAND_DISPLAY
}
# Questions go to a program that stays (window_state.py). `evaluator_in`, `evaluator_out`: also in subshells.
coproc evaluator { exec python3 -u "$(dirname "${BASH_SOURCE[0]}")/window_state.py" "$work/state.json"; }
exec {evaluator_in}>&"${evaluator[1]}" {evaluator_out}<&"${evaluator[0]}"
# ask PID SECONDS EXPRESSION: prints the value; fails where there is none.
ask() {
  local held lines line text=
  printf '%s\t%s\t%s\n' "$1" "$2" "$3" >&"$evaluator_in"
  read -r held lines <&"$evaluator_out" || return 1
  while [ "$lines" -gt 0 ]; do IFS= read -r line <&"$evaluator_out"; text+=$line$'\n'; lines=$((lines - 1)); done
  printf '%s' "$text"
  [ "$held" = yes ]
}
# value EXPRESSION: of the state `s` that the window has written.
value() { ask 0 0 "$1"; }
# until_holds EXPRESSION WHAT: asks for dumps until the expression over the state `s` holds.
until_holds() {
  local held
  held=$(ask "$window" 25 "$1") || fail "$2 (wanted: $1; $held)"
}
# look: the state after what was pressed last is drawn.
look() { ask "$window" 5 True > /dev/null; }
# keys KEY...: each is drawn before the next.
keys() { for one in "$@"; do xdotool key "$one"; look; done; }
# type_text TEXT
type_text() { xdotool type --delay 20 "$1"; look; }
# palette WORDS: does what the palette finds first for them.
palette() {
  xdotool key ctrl+p
  until_holds "'dialog' in s['panels']" "the palette opens"
  xdotool key ctrl+a; look
  xdotool type --delay 20 "$1"
  until_holds "s['shows']['dialog'][0] == '$1'" "the palette has the words"
  keys Return
}

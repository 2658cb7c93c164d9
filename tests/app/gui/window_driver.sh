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
# value EXPRESSION: of the state `s` that the window has written.
value() { python3 - "$work/state.json" "$1" << 'PY'
import json, sys
state = json.load(open(sys.argv[1]))
print(eval(sys.argv[2], {"s": state}))
PY
}
# until_holds EXPRESSION WHAT: asks for dumps until the expression over the state `s` holds.
until_holds() {
  for _ in $(seq 80); do
    kill -USR1 $window 2> /dev/null || fail "the window is gone: $2"
    sleep 0.15
    [ -f "$work/state.json" ] && [ "$(value "bool($1)" 2> /dev/null)" = True ] && return 0
  done
  fail "$2 (wanted: $1)"
}

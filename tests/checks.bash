# Assertions of test scripts, and what they find. To be sourced by scripts that keep the exit status of their last run in $status and define told(), which prints what a failure should show of its output
failures=0

check() { # what, then a condition to evaluate
  if eval "$2"; then
    echo "ok: $1"
  else
    failures=$((failures + 1))
    printf 'FAILED: %s\n  exit status %s, output:\n' "$1" "$status"
    told | sed 's/^/    /'
  fi
}

finish() {
  [ $failures = 0 ] || { echo "$failures failures"; exit 1; }
}

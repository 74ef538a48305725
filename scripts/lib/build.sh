# Configuring, building and testing with presets, for scripts/test and scripts/demo. Sourced.
# shellcheck shell=bash

JOBS=${KVSWEEP_JOBS:-$(nproc)}

# A stage's name and the seconds since the start, so that a log shows where the time goes.
stage() { printf '== %s (at %d s)\n' "$*" "$SECONDS"; }

# run_logged LOG COMMAND...: quiet unless it fails.
run_logged() {
  local log=$1
  shift
  mkdir -p "$(dirname "$log")"
  if ! "$@" >"$log" 2>&1; then
    grep -nE 'error|FAILED' "$log" | head -n 20 >&2 || true
    tail -n 40 "$log" >&2
    die "$* failed; the whole output is in $log"
  fi
}

# build PRESET [TARGET...]: without targets, everything.
build() {
  local preset=$1 target targets=()
  shift
  for target in "$@"; do targets+=(--target "$target"); done
  run_logged "$PROJECT_DIR/build/$preset.configure.log" cmake --preset "$preset"
  run_logged "$PROJECT_DIR/build/$preset.build.log" \
    cmake --build --preset "$preset" --parallel "$JOBS" "${targets[@]}"
}

# run_tests PRESET [CTEST_ARGUMENT...]: never ends the script; the record is in RESULTS. Tests that
# compare with numpy find the one that set-up fetched.
RESULTS=()
run_tests() {
  local preset=$1 record=$PROJECT_DIR/build/$1.tests.xml
  shift
  rm -f "$record"
  RESULTS+=("$record")
  PYTHONPATH=$DEPS_DIR/numpy PYTHONDONTWRITEBYTECODE=1 \
    ctest --preset "$preset" --parallel "$JOBS" --timeout 300 --output-junit "$record" "$@" || true
}

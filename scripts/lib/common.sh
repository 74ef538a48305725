# Shared by the scripts: where things are, messages, stamps. Sourced, never run.
# shellcheck shell=bash

PROJECT_DIR=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd -P)
DEPS_DIR=$PROJECT_DIR/.deps
STAMPS_DIR=$DEPS_DIR/stamps
TMP_DIR=$DEPS_DIR/tmp
LOG_DIR=$DEPS_DIR/logs
PACKAGES_DIR=$PROJECT_DIR/scripts/packages
MODELS_DIR=$DEPS_DIR/models
MODEL_FILE=SmolLM2-135M-Instruct.Q4_1.gguf

# One line of progress. Goes to stdout; errors go to stderr.
say() { printf '%s\n' "$*"; }

die() {
  printf '%s: %s\n' "$(basename -- "$0")" "$*" >&2
  exit 1
}

# The names of a package list, without comments.
package_names() { sed -e 's/#.*//' -e '/^[[:space:]]*$/d' "$@"; }

# A hash of what decides a step's result: its inputs, and a number to raise when the step changes.
recipe() {
  { printf '%s\n' "$1"; shift; cat -- "$@"; } | sha256sum | cut -d' ' -f1
}

# A hash of the names and sizes below a folder: finds missing, extra and truncated files in under a
# second. Contents were checked against recorded hashes when they were downloaded.
tree_print() {
  (cd -- "$1" && find . -name __pycache__ -prune -o -type f -printf '%P %s\n' -o \
    -type l -printf '%P -> %l\n' | LC_ALL=C sort | sha256sum | cut -d' ' -f1)
}

# is_complete NAME DIR RECIPE: DIR is what the step NAME with this recipe left.
is_complete() {
  local stamp=$STAMPS_DIR/$1
  [ -d "$2" ] && [ -r "$stamp" ] && [ "$(cat "$stamp")" = "$3 $(tree_print "$2")" ]
}

mark_complete() {
  mkdir -p "$STAMPS_DIR"
  printf '%s %s\n' "$3" "$(tree_print "$2")" >"$STAMPS_DIR/$1.new"
  mv "$STAMPS_DIR/$1.new" "$STAMPS_DIR/$1"
}

# put_in_place NEW DIR: replaces DIR by NEW. The stamp is written afterwards, so that whatever
# happens in between is seen as incomplete.
put_in_place() {
  mkdir -p "$(dirname "$2")"
  rm -rf "$2.old"
  [ ! -e "$2" ] || mv "$2" "$2.old"
  mv "$1" "$2"
  rm -rf "$2.old"
}

free_mb() { df --output=avail -BM "$1" | tail -n 1 | tr -dc '0-9'; }

# Why a download or an unpacking failed, in words, from its log.
explain_failure() {
  local what=$1 log=$2
  if grep -qiE 'no space left|disk quota' "$log"; then
    die "$what: the disk is full ($(free_mb "$PROJECT_DIR") MB free in $PROJECT_DIR). Free some space and run scripts/setup again; finished steps are kept."
  elif grep -qiE 'do not match the hashes|hash mismatch|checksum' "$log"; then
    die "$what: the download does not have the recorded hash; it was not used. Run scripts/setup again; if it stays, something between here and the registry changes files."
  elif grep -qiE 'name resolution|resolve host|could not resolve|temporary failure|connection|timed out|max retries|unreachable|proxy|network' "$log"; then
    die "$what: the registry cannot be reached. Check the network (and proxy settings) and run scripts/setup again; finished steps are kept."
  fi
  tail -n 5 "$log" >&2
  die "$what failed; the whole output is in $log"
}

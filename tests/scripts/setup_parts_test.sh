#!/usr/bin/env bash
# What scripts/setup rests on: stamps that tell a complete folder from a damaged one, replacement by
# renaming, version comparison, and words for failures.
set -euo pipefail
project=$(cd -- "$(dirname -- "$0")/../.." && pwd -P)
# shellcheck source=scripts/lib/common.sh
source "$project/scripts/lib/common.sh"
# shellcheck source=scripts/lib/debian.sh
source "$project/scripts/lib/debian.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
STAMPS_DIR=$work/stamps
failures=0

expect() { # expect yes|no DESCRIPTION COMMAND...
  local wanted=$1 what=$2 got=no
  shift 2
  if "$@"; then got=yes; fi
  [ "$got" = "$wanted" ] || { echo "wrong: $what ($got)"; failures=$((failures + 1)); }
}
contains() { grep -qF -- "$2" <<<"$1"; }
# The first line a failure is explained with, given the log's text.
explained() { (printf '%s\n' "$1" >"$work/log"; explain_failure torch "$work/log") 2>&1 | head -n 1; }

fill() { rm -rf "$work/dir"; mkdir -p "$work/dir/sub"; echo hello >"$work/dir/sub/a"; ln -s sub/a "$work/dir/b"; }
fill
expect no "a folder without a stamp is complete" is_complete part "$work/dir" key
mark_complete part "$work/dir" key
expect yes "an untouched folder is complete" is_complete part "$work/dir" key
expect no "other inputs, still complete" is_complete part "$work/dir" other-key
mkdir -p "$work/dir/__pycache__" && echo x >"$work/dir/__pycache__/x.pyc"
expect yes "Python's caches do not matter" is_complete part "$work/dir" key
echo more >>"$work/dir/sub/a"
expect no "a file of another size is accepted" is_complete part "$work/dir" key
fill && rm "$work/dir/sub/a"
expect no "a missing file is accepted" is_complete part "$work/dir" key
fill && ln -sfn elsewhere "$work/dir/b"
expect no "a link to elsewhere is accepted" is_complete part "$work/dir" key
fill && touch "$work/dir/new"
expect no "an extra file is accepted" is_complete part "$work/dir" key
rm -rf "$work/dir"
expect no "a missing folder is complete" is_complete part "$work/dir" key

mkdir -p "$work/new" "$work/place/deep" && touch "$work/new/n" "$work/place/deep/o"
put_in_place "$work/new" "$work/place/deep"
expect yes "the new folder is in place" test -e "$work/place/deep/n" -a ! -e "$work/place/deep/o"
expect no "remains of the exchange" test -e "$work/place/deep.old" -o -e "$work/new"

echo one >"$work/input"
key=$(recipe 1 "$work/input")
echo two >"$work/input"
expect no "a changed input keeps the recipe" test "$key" = "$(recipe 1 "$work/input")"

expect yes "1.100.0 is newer than 1.85" version_at_least 1.100.0 1.85
expect yes "1.85.0 is new enough" version_at_least 1.85.0 1.85
expect no "1.63.0 is new enough" version_at_least 1.63.0 1.85

expect yes "a full disk is named" contains \
  "$(explained 'OSError: [Errno 28] No space left on device')" "the disk is full"
expect yes "a lost network is named" contains \
  "$(explained 'Temporary failure in name resolution')" "cannot be reached"
expect yes "a wrong hash is named" contains \
  "$(explained 'THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE')" "recorded hash"
expect yes "anything else shows the log" contains "$(explained 'strange words')" "strange words"

[ "$failures" = 0 ] && echo "all as expected"
exit $((failures > 0))

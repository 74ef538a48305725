#!/usr/bin/env bash
# install_tree_test.sh CMAKE BUILD_DIR SOURCE_DIR
# `cmake --install` gives a tree that still works after it was moved, and that takes nothing from the
# build folder or from .deps.
set -euo pipefail
cmake=$1 build=$2 source=$3
work=$build/install_tree_test
rm -rf "$work"
trap 'rm -rf "$work"' EXIT
"$cmake" --install "$build" --prefix "$work/first" >"$build/install_tree_test.log" 2>&1 ||
  { cat "$build/install_tree_test.log"; exit 1; }
mv "$work/first" "$work/moved"

failed=0
for program in "$work"/moved/bin/*; do
  name=$(basename "$program")
  libraries=$(env -i ldd "$program")
  if grep -F 'not found' <<<"$libraries"; then
    echo "$name: a library is missing"
    failed=1
  fi
  if grep -F -e "$build/" -e "$source/" <<<"$libraries" | grep -vF " $work/moved/bin/../lib/"; then
    echo "$name: a library comes from outside the installed tree"
    failed=1
  fi
  if ! env -i PATH=/usr/bin:/bin HOME=/nonexistent "$program" --version; then
    echo "$name --version fails in the installed tree"
    failed=1
  fi
done
[ -x "$work/moved/bin/kvsweep" ] || { echo "bin/kvsweep was not installed"; failed=1; }
exit $failed

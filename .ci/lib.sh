# What the scripts of this folder share. Sourced, never run.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export CI=true CARGO_TERM_COLOR=never CARGO_INCREMENTAL=0
# What is built once and kept: programs of others, and Python environments.
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
export CARGO_TARGET_DIR=$target
exec </dev/null

step() {
    printf '\n== [%4d s] %s\n' "$SECONDS" "$*"
}

run() {
    step "$*"
    "$@"
}

# Installs packages of the system unless a command tells that they are there: `system "test -x /usr/bin/x" package...`
system() {
    local found=$1
    shift
    if ! bash -c "$found" >/dev/null 2>&1; then
        run apt-get update
        run apt-get install -y --no-install-recommends "$@"
    fi
}

# A Python environment with pinned packages: `python NAME REQUIREMENT...`. Says where it is.
python() {
    local place=$target/$1
    shift
    if [ ! -x "$place/bin/python" ]; then
        run python3 -m venv "$place" >&2
    fi
    run "$place/bin/python" -m pip install --quiet "$@" >&2
    printf '%s\n' "$place"
}

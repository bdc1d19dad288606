# What the scripts of this folder share. Sourced, never run.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export CI=true CARGO_TERM_COLOR=never CARGO_INCREMENTAL=0
# What is built once and kept: crates, programs of others, and Python environments.
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
export CARGO_TARGET_DIR=$target
mkdir -p "$target"
exec </dev/null

# Packages of the system, by the name that lanes have for them: a command that tells that they are there, and what to install.
declare -A found=(
    [faketime]='ls /usr/lib/*/faketime/libfaketime.so.1'
    [browser]='command -v chromium'
    [engine]='command -v dockerd && test -x /usr/bin/docker-compose && command -v iptables'
    [prometheus]='command -v prometheus'
    [slurm]='command -v slurmctld && command -v ip'
    [board]='command -v qemu-system-arm'
    [arm64]='command -v qemu-aarch64'
    [cxx]='command -v c++'
    [units]='command -v systemd-analyze'
    [packaging]='command -v pkg-config && command -v readelf && command -v dpkg-deb && command -v aarch64-linux-gnu-gcc'
    [tshark]='command -v tshark'
    [mpi]='command -v mpirun && command -v mpicc && ls /usr/lib/llvm-*/lib/libclang*.so*'
    [opam]='command -v opam && command -v ocamlopt && command -v curl && command -v unzip'
) packages=(
    [faketime]=libfaketime
    [browser]=chromium
    [engine]='docker.io docker-compose iptables'
    [prometheus]=prometheus
    [slurm]='slurm-wlm iproute2'
    [board]=qemu-system-arm
    [arm64]=qemu-user
    [cxx]=g++
    [units]=systemd
    [packaging]='pkg-config binutils dpkg gcc-aarch64-linux-gnu libc6-dev-arm64-cross'
    [tshark]=tshark
    [mpi]='openmpi-bin libopenmpi-dev libclang-dev'
    [opam]='opam ocaml-nox make gcc patch bzip2 unzip curl git'
)
# Python environments, by name, with the files that name their packages, versions and hashes (.ci/pin). Those of MAVProxy are apart,
# because of what it depends on nothing is used but what `mavlink` has.
declare -A requirements=(
    [hack]=.ci/requirements/hack.txt
    [deny]=.ci/requirements/deny.txt
    [coverage]=.ci/requirements/coverage.txt
    [browser]=.ci/requirements/browser.txt
    [mavlink]='deploy/mavlink/requirements.txt edge/tests/mavlink/requirements.txt'
    [mavproxy]='--no-deps edge/tests/mavlink/mavproxy.txt'
    [manifests]=deploy/kubernetes/requirements.txt
    [model]=embedded/model/requirements.txt
    [cross]=deploy/cross-requirements.txt
    [python]=.ci/requirements/python.txt
    [reference]=models/reference/requirements.txt
)

step() {
    printf '\n== [%4d s] %s\n' "$SECONDS" "$*"
}

run() {
    step "$*"
    "$@"
}

# Lints the workspace's crates while they are compiled, so that lints cost no second pass over them. Every lane that takes what the
# test lane has built must call this, because cargo keeps what a wrapper has compiled apart.
lint_while_compiling() {
    export RUSTC_WORKSPACE_WRAPPER=clippy-driver CLIPPY_ARGS=-Dwarnings__CLIPPY_HACKERY__
}

# Installs packages of the system that are not there: `system NAME...`. Lanes wait for each other here, because apt does not; its
# lists are fetched once.
system() {
    (
        flock 9
        local name missing=()
        for name in "$@"; do
            if ! bash -c "${found[$name]}" >/dev/null 2>&1; then
                # shellcheck disable=SC2206 # several words
                missing+=(${packages[$name]})
            fi
        done
        if [ ${#missing[@]} -gt 0 ]; then
            step "apt-get install ${missing[*]}"
            [ -e "$target/ci-lists" ] || apt-get -qq update
            touch "$target/ci-lists"
            DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "${missing[@]}" >/dev/null
        fi
    ) 9>"$target/ci-packages.lock"
}

# Makes a Python environment, or adds to one: `python NAME [MORE...]`. Says where it is: in the folder of the first name.
python() {
    local place=$target/$1 name made word options
    (
        flock 9
        [ -x "$place/bin/python" ] || python3 -m venv "$place" >&2
        for name in "$@"; do
            # A pinned file may have changed since.
            made=$(for word in ${requirements[$name]}; do [ ! -f "$word" ] && echo "$word" || cat "$word"; done)
            if [ "$(cat "$place/made-of-$name" 2>/dev/null)" != "$made" ]; then
                step "pip install ${requirements[$name]}" >&2
                # A package that pip builds would have what it is built with installed without hashes.
                options=(--require-hashes --only-binary :all:)
                for word in ${requirements[$name]}; do
                    [ -f "$word" ] && options+=(--requirement "$word") || options+=("$word")
                done
                "$place/bin/python" -m pip install --quiet --disable-pip-version-check "${options[@]}" >&2
                printf '%s\n' "$made" >"$place/made-of-$name"
            fi
        done
    ) 9>"$target/ci-python-$1.lock"
    printf '%s\n' "$place"
}

# Adds the standard library of another target: `standard_library TARGET`.
standard_library() {
    if ! rustup target list --installed 2>/dev/null | grep -x "$1" >/dev/null; then
        (
            flock 9
            run rustup target add "$1"
        ) 9>"$target/ci-rustup.lock"
    fi
}

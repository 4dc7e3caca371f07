#!/bin/sh
# Install what a machine lacks: `install.sh python` creates .venv, `install.sh java` checks Java and Maven.
# As root it installs Debian packages; otherwise it prints which ones are missing.
set -eu
cd "$(dirname "$0")/.."
missing= packages=

find_python() {
    for name in python3.14 python3.13 python3.12 python3.11 python3; do
        if is_usable "$name"; then
            echo "$name"
            return
        fi
    done
    return 1
}

is_usable() {
    "$1" -c 'import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

has_java() {
    java=${JAVA_HOME:+$JAVA_HOME/bin/}java
    version=$("$java" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p')
    [ "${version:-0}" -ge 17 ]
}

# need WHAT PACKAGE...: note what is missing and the first of these packages that this system has.
need() {
    missing="${missing:+$missing and }$1"
    shift
    if is_root && [ -z "$packages" ]; then apt-get update -q >&2; fi
    for package in "$@"; do
        if apt-cache show "$package" >/dev/null 2>&1; then break; fi
    done
    packages="${packages:+$packages }$package"
}

# Install the noted packages, or print how.
provide() {
    if [ -z "$packages" ]; then return; fi
    if ! is_root; then
        echo "Missing: $missing. Run, as root, \`apt-get install $packages\`, then this again." >&2
        exit 1
    fi
    # shellcheck disable=SC2086 # several words
    DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends \
        -o DPkg::Lock::Timeout=300 $packages >&2
}

is_root() {
    [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null
}

# Run a command that the kernel ends if this script is killed.
guarded() {
    if command -v setpriv >/dev/null; then setpriv --pdeathsig TERM "$@"; else "$@"; fi
}

install_python() {
    # One at a time: two in one checkout would write the same files.
    exec 9<deploy/install.sh
    if command -v flock >/dev/null; then flock 9; fi
    find_python >/dev/null ||
        need "Python 3.11 or newer with its venv module" \
            python3.14-venv python3.13-venv python3.12-venv python3.11-venv
    provide
    if ! is_usable .venv/bin/python || ! .venv/bin/python -c 'import pip' 2>/dev/null; then
        echo "creating .venv with $(find_python) …" >&2
        "$(find_python)" -m venv --clear .venv
    fi
    install_packages
    echo "installing deniable itself …" >&2
    guarded .venv/bin/python -m pip install -q --no-deps --no-build-isolation -e .
    touch .venv/installed
    # shellcheck disable=SC2016 # for the reader's shell
    echo 'installed. Next: `make demo`, or for your own data

    export PATH="$PWD/.venv/bin:$PATH"
    deniable init shop && cd shop' >&2
}

# Install the locked packages; show how many are there.
install_packages() {
    packages_in_all=$(grep -c '^[a-z0-9].*==' requirements.lock)
    echo "downloading and installing about $packages_in_all packages, which takes a minute or two …" >&2
    failed=$(mktemp)
    {
        guarded .venv/bin/python -m pip install --no-input --progress-bar off --disable-pip-version-check \
            --require-hashes -r requirements.lock || echo failed >"$failed"
    } | show_progress "$packages_in_all" >&2
    if [ -s "$failed" ]; then
        rm "$failed"
        return 1
    fi
    rm "$failed"
}

# Count what pip prints: on a terminal in one line, else in a line every 25 packages.
show_progress() {
    if [ -t 2 ]; then on_terminal=1; else on_terminal=0; fi
    awk -v all="$1" -v terminal="$on_terminal" '
        function show(text) {
            if (terminal) printf "\r\033[K  %s", text
            else if (count % 25 == 0) print "  " text
            fflush()
        }
        /^(Collecting|Requirement already satisfied)/ { count++; show(count " of about " all ": " $2) }
        /^Installing collected packages/ { if (terminal) show("unpacking …"); else print "  unpacking …"; fflush() }
        /^ERROR/ { print }
        END { if (terminal) printf "\r\033[K" }'
}

install_java() {
    has_java ||
        need "Java 17 or newer" openjdk-17-jre-headless openjdk-21-jre-headless default-jre-headless
    command -v mvn >/dev/null || need Maven maven
    provide
}

case ${1:-} in
python) install_python ;;
java) install_java ;;
*) echo "usage: install.sh python|java" >&2 && exit 2 ;;
esac

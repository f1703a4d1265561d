#!/bin/sh
# Make a virtual environment with pip in it, anew: venv.sh FOLDER
# PYTHON names the interpreter to prefer; an older one than 3.11 is passed over.
set -eu

folder=$1

fail() {
    printf 'antiphon: %s\n' "$1" >&2
    exit 1
}

runs() {
    "$@" >/dev/null 2>&1
}

python=
for candidate in "${PYTHON:-python3}" python3.14 python3.13 python3.12 python3.11; do
    if runs "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
        python=$candidate
        break
    fi
done
[ -n "$python" ] ||
    fail 'Python 3.11 or newer is needed: install it, or name it with make PYTHON=/path/to/python3'

rm -rf "$folder"
if runs "$python" -c 'import ensurepip, venv'; then
    "$python" -m venv "$folder"
elif runs uv --version; then
    uv venv --quiet --seed --python "$python" "$folder"
elif runs virtualenv --version; then
    virtualenv --quiet --python "$python" "$folder"
elif runs "$python" -c 'import pip, venv'; then
    # Debian keeps ensurepip in a package of its own; its pip can fill the environment.
    "$python" -m venv --without-pip "$folder"
    "$python" -m pip --quiet --python "$folder/bin/python" install pip
else
    fail "$python cannot make virtual environments: install python3-venv (Debian, Ubuntu) or uv"
fi

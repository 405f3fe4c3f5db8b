#!/usr/bin/env bash
# `make release`: all that an index gets, in dist/: a wheel of each Python from 3.10 to 3.14 and of the free-threaded 3.14t
# that is on this machine, the wheel of libweft (make wheel-cpp) and the metadata of warp-lang. Each is checked; a Python
# that is not here is named.
# PYTHONS="python3.12 /opt/python3.13" names others.
set -euo pipefail
cd "$(dirname "$0")/../.."

# The version of an interpreter, as in 3.14 or 3.14t; nothing where it does not start (pyenv has names of such on PATH).
version_of() {
    "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2] + ("t" if "t" in sys.abiflags else ""))' 2>/dev/null
}

# The interpreter of a version: on PATH, or one of pyenv's.
find_python() {
    local candidate
    for candidate in "$(command -v "python$1" || true)" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"${1%t}".*/bin/python; do
        if [ -x "$candidate" ] && [ "$(version_of "$candidate")" = "$1" ]; then
            echo "$candidate"
            return
        fi
    done
    return 1
}

missing=()
pythons=()
if [ -n "${PYTHONS:-}" ]; then
    read -ra pythons <<<"$PYTHONS"
else
    for version in 3.10 3.11 3.12 3.13 3.14 3.14t; do
        if found=$(find_python "$version"); then pythons+=("$found"); else missing+=("$version"); fi
    done
fi

failed=()
for python in "${pythons[@]}"; do
    echo "== a wheel for $python"
    PYTHON=$python tools/release/wheel.sh || failed+=("$python")
done
.venv/bin/python tools/release/metadata_wheel.py >/dev/null

echo "== dist"
(cd dist && sha256sum -- *.whl | while read -r sum name; do
    printf '%s  %s  %5.1f MiB\n' "$sum" "$name" "$(stat -c %s "$name" | awk '{print $1 / 1048576}')"
done)
[ ${#missing[@]} -eq 0 ] || echo "not on this machine: Python ${missing[*]}; PYTHONS=\"…\" names interpreters"
if [ ${#failed[@]} -gt 0 ]; then
    echo "release: no wheel for ${failed[*]}" >&2
    exit 1
fi

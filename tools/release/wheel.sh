#!/usr/bin/env bash
# `make wheel [PYTHON=python3.12]`: a wheel for that Python in dist/, which needs nothing but NumPy where it is installed.
#
# The build runs in a virtual environment of its own. auditwheel then puts the shared libraries (TBB, SLEEF, zstd) into
# the wheel under names of their own and finds the manylinux tag: the oldest glibc that has every symbol used, which is
# the one of the machine that builds (2.36 on Debian 12) or older. The last steps check what the wheel promises.
set -euo pipefail
cd "$(dirname "$0")/../.."
PYTHON=${PYTHON:-python3}
limit_mib=25

tag=$("$PYTHON" -c 'import sys; print("cp%d%d" % sys.version_info[:2] + sys.abiflags)')
work=${BUILD:-build}/wheel-$tag
venv=$work/venv
mkdir -p dist

# Requirements come from pyproject.toml, as in tools/setup.py.
[ -x "$venv/bin/pip" ] || "$PYTHON" -m venv "$venv"
mapfile -t requirements < <("$venv/bin/python" - <<'PYTHON_CODE'
try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    from pip._vendor import tomli as tomllib
with open("pyproject.toml", "rb") as file:
    project = tomllib.load(file)
print(*project["build-system"]["requires"], *project["dependency-groups"]["wheel"], *project["dependency-groups"]["cuda"], sep="\n")
PYTHON_CODE
)
"$venv/bin/pip" install --quiet "${requirements[@]}"
export PATH="$PWD/$venv/bin:$PATH"

rm -rf "$work/raw" "$work/repaired"
pip wheel . --quiet --no-deps --no-build-isolation --wheel-dir "$work/raw" \
    --config-settings=build-dir="$work/cmake" --config-settings=install.strip=true
auditwheel repair --strip --wheel-dir "$work/repaired" "$work"/raw/*.whl
wheel=$(echo "$work"/repaired/*.whl)

# ---- what the wheel promises ----
fail() {
    echo "wheel: $1" >&2
    exit 1
}

unpacked=$work/unpacked
rm -rf "$unpacked"
python -m zipfile -e "$wheel" "$unpacked"
extension=$(echo "$unpacked"/warp/_weft*.so)

exported=$(nm -D --defined-only "$extension" | awk '{print $3}' | sort | tr '\n' ' ')
[ "$exported" = "PyInit__weft __jit_debug_descriptor __jit_debug_register_code " ] ||
    fail "the extension shows other libraries more than PyInit__weft and GDB's interface: $exported"

for library in LLVM oneTBB SLEEF BLIS zstd nanobind robin_map libdevice; do
    compgen -G "$unpacked/*.dist-info/licenses/third_party/$library.txt" >/dev/null ||
        fail "the licence of $library is not in the wheel"
done

bundled=$(cd "$unpacked" && ls weft_lang.libs)
for library in libtbb libsleef; do
    grep -q "^$library-[0-9a-f]*\." <<<"$bundled" || fail "$library is not in the wheel under a private name: $bundled"
done

emulated=$(python -c 'import sys, zipfile; print(zipfile.ZipFile(sys.argv[1]).getinfo("warp/weft-emulated-cuda.so").compress_size)' "$wheel")
((emulated <= 1 << 20)) || fail "the emulated CUDA device takes $((emulated >> 10)) KiB of the wheel; at most 1024 are promised"

size=$(stat -c %s "$wheel")
((size <= limit_mib << 20)) || fail "$(basename "$wheel") is $((size >> 20)) MiB; at most $limit_mib are promised"

cp "$wheel" dist/
echo "dist/$(basename "$wheel")  $((size * 10 / 1048576 / 10)).$((size * 10 / 1048576 % 10)) MiB, $((emulated >> 10)) KiB of it for the emulated CUDA device"
tools/release/test_wheel.sh "dist/$(basename "$wheel")"
python tools/release/metadata_wheel.py dist

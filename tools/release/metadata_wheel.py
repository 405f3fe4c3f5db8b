"""Writes the wheel of weft-warp-lang: metadata of the name warp-lang, for packages that look for that distribution.

    python tools/release/metadata_wheel.py [folder]          # default: dist/

Packages that were written for the API ask `importlib.metadata` for the version of warp-lang, or name it as a
requirement. If weft-lang is installed with its extra `packages`, this answers with the release of the API. It has no
modules, and nothing installs it unasked.
"""

import base64
import hashlib
import re
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NAME, STAND_IN = "weft_warp_lang", "warp_lang"
MARK = "WEFT"  # by which python/warp/_conflict.py tells it from the real distribution
DATE = (2020, 1, 1, 0, 0, 0)  # the same bytes each time


def api_version():
    """The release of the API, as `wp.__version__` has it."""
    return re.search(r'^version: str = "(.+)"$', (ROOT / "python/warp/config.py").read_text(), re.M)[1]


def metadata(name, version, summary):
    return (
        f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nSummary: {summary}\nLicense: Apache-2.0\n"
        "Requires-Python: >=3.10\n"
    )


def write(folder):
    """The wheel's path."""
    version = api_version()
    info, data = f"{NAME}-{version}.dist-info", f"{NAME}-{version}.data/purelib/{STAND_IN}-{version}.dist-info"
    own = metadata("weft-warp-lang", version, "Answers for warp-lang where weft-lang is installed.")
    stand_in = metadata("warp-lang", version, "Weft, by the name that packages for the API ask for.")
    files = {
        f"{data}/METADATA": stand_in,
        f"{data}/INSTALLER": "weft\n",
        f"{data}/{MARK}": "weft-warp-lang has installed this; pip uninstall weft-warp-lang removes it.\n",
        f"{info}/METADATA": own + "Requires-Dist: weft-lang\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: weft\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = ""
    for name, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(text.encode())}\n"
    files[f"{info}/RECORD"] = record + f"{info}/RECORD,,\n"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{NAME}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, text in files.items():
            wheel.writestr(zipfile.ZipInfo(name, DATE), text)
    return path


if __name__ == "__main__":
    print(write(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "dist"))

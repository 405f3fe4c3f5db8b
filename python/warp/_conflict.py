"""Notices that another distribution that installs a package called `warp` sits in the same environment.

Two distributions that write one folder overwrite each other's files, and which one `import warp` gets is a matter of
the order they were installed in. So `import warp` refuses to start and says what to do.
"""

import os
import sys

OTHER = "warp_lang-"


def environment_folders():
    """The folders of distributions that may share our folder or compete with it: the package's, and site-packages."""
    folders = {os.path.dirname(os.path.dirname(os.path.abspath(__file__)))}
    folders.update(path for path in sys.path if path.endswith(("site-packages", "dist-packages")))
    return folders


def is_ours(path):
    """Whether the metadata is that of tools/release/metadata_wheel.py, which has no modules."""
    return os.path.exists(os.path.join(path, "WEFT"))


def find_conflict(folders):
    """The metadata folder of the other distribution, or None."""
    for folder in sorted(folders):
        try:
            names = os.listdir(folder)
        except OSError:  # a path entry that does not exist, or may not be read, holds nothing to import either
            continue
        for name in names:
            path = os.path.join(folder, name)
            if name.startswith(OTHER) and name.endswith((".dist-info", ".egg-info")) and not is_ours(path):
                return path
    return None


def check():
    """Raises ImportError if warp-lang is installed in this package's environment."""
    found = find_conflict(environment_folders())
    if found is None:
        return
    version = os.path.basename(found)[len(OTHER) :].rsplit(".", 1)[0]
    raise ImportError(
        f"warp-lang {version} is installed in the same environment as weft-lang ({found}). Both are imported as 'warp' "
        "and overwrite each other's files. Keep them in separate virtual environments; or, to keep Weft here: "
        "pip uninstall warp-lang weft-lang && pip install weft-lang"
    )

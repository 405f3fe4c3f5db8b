"""The folder for caches."""

from __future__ import annotations

import os

__all__ = ["user_cache_dir"]


def user_cache_dir(appname: str | None = None, appauthor: str | None = None, version: str | None = None) -> str:
    """$XDG_CACHE_HOME, else ~/.cache, with the folders of the program and its version below it."""
    folder = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(folder, *(part for part in (appname, version) if part))

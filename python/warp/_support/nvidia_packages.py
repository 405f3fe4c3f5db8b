"""NVIDIA's Python packages, which keep programs and libraries of CUDA toolkits."""

from __future__ import annotations

import os


def folders(*parts: str) -> list[str]:
    """The folders ``nvidia/<part>``, which need not exist; none if no package of NVIDIA is installed."""
    import importlib.util  # few programs need it

    found = importlib.util.find_spec("nvidia")
    roots = list(found.submodule_search_locations or ()) if found else []
    return [os.path.join(root, part) for root in roots for part in parts]

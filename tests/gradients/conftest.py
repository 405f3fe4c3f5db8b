"""Lets the sweep's tests import oracle.py and sweep.py, which stand beside them."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

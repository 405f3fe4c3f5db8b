"""Lets the tests import brute_force.py, which stands beside them."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

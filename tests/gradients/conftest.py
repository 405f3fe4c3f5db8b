"""Lets the tests here import what stands beside them, and the reader of the builtin table in tests/builtins."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "builtins")]

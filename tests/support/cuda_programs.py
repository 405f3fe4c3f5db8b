"""Programs in processes of their own, for tests of CUDA devices."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path


def run(code, **environment):
    """The output of a Python process that runs this code with other settings."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "program.py")
        file.write_text(code)
        done = subprocess.run(
            [sys.executable, file], capture_output=True, text=True, env={**os.environ, **environment}, timeout=120
        )
    return done.stdout + done.stderr

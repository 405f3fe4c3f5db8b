"""What tests of several files here share."""

import os
import subprocess
import sys
import textwrap

import pytest


@pytest.fixture
def run(tmp_path):
    """What a program prints in a process of its own: where nobody has set a default device, with other settings of the
    environment, or because an error of the device ends its use of CUDA."""

    def run(code, **environment):
        program = tmp_path / "program.py"
        program.write_text("import gc, numpy as np\nimport warp as wp\n" + textwrap.dedent(code))
        done = subprocess.run(
            [sys.executable, program], capture_output=True, text=True, env={**os.environ, **environment}, timeout=120
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run

# Everything is one line here; the work is in tools/. CONTRIBUTING.md says what each target does and needs.
PYTHON ?= python3
BUILD ?= build
PREFIX ?= /usr/local
export PYTHON BUILD

.PHONY: setup setup-interop demo quick test test-long test-documents test-interop test-interop-old check bench docs install wheel wheel-cpp release test-sanitize test-together test-mutants test-clients gpu-check gpu-code clean

setup:         ; @$(PYTHON) tools/setup.py
setup-interop: ; @$(PYTHON) tools/setup.py --for interop
demo:          ; @$(PYTHON) tools/setup.py --for demo && .venv/bin/python -m warp.examples.lagoon && .venv/bin/python -m warp.examples.shape_wave && .venv/bin/python -m warp.examples.mountain_lake --pixels 480 --samples 16
quick: setup   ; @tools/test.sh --quick
test: setup    ; @tools/test.sh
check: setup   ; @tools/check.sh
test-long: setup ; @tools/test_long.sh
test-documents: setup ; @tools/test_documents.sh
test-interop: setup ; @.venv/bin/python -m pytest -q tests/interop
test-interop-old: setup ; @tools/test_interop_old.sh
bench: setup   ; @.venv/bin/python bench/run.py
docs: setup    ; @.venv/bin/python tools/generate/gen_reference.py && .venv/bin/python tools/checks/check_docs.py
install: setup ; @.venv/bin/cmake --install $(BUILD) --component library --prefix $(PREFIX)
wheel:         ; @tools/release/wheel.sh
wheel-cpp: setup ; @tools/release/wheel_cpp.sh
release: wheel-cpp ; @tools/release/release.sh
test-mutants: setup ; @.venv/bin/python tools/mutation/mutate.py $(MUTANTS)
test-sanitize: setup ; @tools/test_sanitize.sh
test-together: setup ; @tools/test_together.sh
test-clients: setup ; @.venv/bin/python tools/clients/test_clients.py --newton --tests
# Of the Weft that is installed, for $(PYTHON): needs no build.
gpu-check:     ; @$(PYTHON) tools/gpu/gpu_check.py $(if $(QUICK),--quick) $(CHECKS)
gpu-code: setup ; @.venv/bin/python -m pip install --quiet nvidia-cuda-nvdisasm && .venv/bin/python tools/gpu/compare_machine_code.py $(ROWS)
clean:         ; @rm -rf $(BUILD) dist .pytest_cache .ruff_cache .hypothesis

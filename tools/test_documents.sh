#!/usr/bin/env bash
# `make test-documents`: the samples of the seed documents as they are printed, and the table of builtins beside the list of
# the specification. The documents are no part of this repository: WEFT_DOCUMENTS names the folder that has seeds/ and spec/.
set -uo pipefail
cd "$(dirname "$0")/.."
export WEFT_DOCUMENTS
WEFT_DOCUMENTS=$(realpath -e "${WEFT_DOCUMENTS:-../shared}") || exit
. tools/steps.sh

documents() {
    .venv/bin/python -m pytest -q -m documents "$@"
}

WARP_CUDA_DRIVER=none step "documents" documents tests/documents tests/builtins/test_listing.py
WARP_CUDA_DRIVER=emulated step "documents on the emulated device" documents --device cuda:0 \
    tests/documents/test_documents.py tests/documents/test_gradients.py

finish

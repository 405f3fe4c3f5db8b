// The opcodes with independent lanes, as text, for tools/gpu/gpu_check.py, which compares them with a GPU. The needs of
// each, for a test that asks ptxas.
#include <string>

#include "lanes/table.h"
#include "ptx/requirements.h"

namespace weft::emulator {

namespace {

std::string text_of(const Slot& slot) { return " " + std::string(1, slot.kind) + std::to_string(slot.bits); }

std::string all_opcodes() {
    std::string text;
    for (const Row* row : all_rows(false)) {
        for (const std::string& opcode : expand(row->pattern)) {
            text += opcode + text_of(row->result);
            for (const Slot& source : row->source)
                if (source.bits) text += text_of(source);
            text += '\n';
        }
    }
    return text;
}

}  // namespace

// One line for each opcode: its name, then the register kind and the bits of its result and sources. Opcodes may appear
// more than once.
extern "C" [[gnu::visibility("default")]] const char* weftEmulatedOpcodes() {
    static const std::string text = all_opcodes();
    return text.c_str();
}

// 1000 times the PTX version (10 · major + minor) that an instruction needs, plus its architecture; `version` is that
// of the module. For tests, which ask ptxas too.
extern "C" [[gnu::visibility("default")]] int weftEmulatedRequirement(const char* opcode, size_t operands,
                                                                      int version) {
    const ptx::Requirement needs = ptx::requirement_of(opcode, operands, version);
    return 1000 * needs.version + needs.architecture;
}

}  // namespace weft::emulator

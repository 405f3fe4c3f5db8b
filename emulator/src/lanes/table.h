#pragma once
// The table of opcodes with independent lanes: finds the row of an opcode, and lists all opcodes of a row.
//
// A pattern is the opcode with choices: "[.ftz]" is optional, "[.rn|.rz]" one of these or none, "(.rz|.rp)" one of
// these.
#include <string>
#include <string_view>
#include <vector>

#include "lanes/lanes.h"

namespace weft::emulator {

bool matches(std::string_view pattern, std::string_view opcode);

// Every opcode of the pattern.
std::vector<std::string> expand(std::string_view pattern);

// The rows for this processor; with wide = false those for any.
std::vector<const Row*> all_rows(bool wide);
bool processor_is_wide();

// The first row of that opcode with so many sources, or nullptr.
const Row* find_row(std::string_view opcode, size_t sources);

// Rounding, .ftz, .sat and other modifiers, as handlers read them.
uint16_t flags_of(std::string_view opcode);

}  // namespace weft::emulator

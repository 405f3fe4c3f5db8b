// The small pieces of the text form that the printer writes and the parser reads back.
#pragma once

#include <string>
#include <string_view>

#include "types/type.h"

namespace weft::ir {

bool is_word_character(char c);       // letter, digit or '_'
bool is_word(std::string_view text);  // word characters, no digit first

// "text" with escapes for quotes, backslashes and control characters.
void append_quoted(std::string& out, std::string_view text);

// A number so that reading it back gives the same bits: true/false, decimal integers, shortest decimals, inf, nan,
// nan:0x<bits of the double> for the NaNs that are not the usual one.
void append_number(std::string& out, Number number, Scalar scalar);

}  // namespace weft::ir

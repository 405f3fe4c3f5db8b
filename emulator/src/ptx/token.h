#pragma once
// Words, numbers and signs of a PTX text. An opcode with its suffixes ("ld.global.nc.b32"), a special register
// ("%tid.x") and a directive (".reg") are one word each.
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace weft::emulator::ptx {

// The text is invalid or unsupported. Messages read "line N: expected ...; found 'text'".
struct Error : std::runtime_error {
    Error(uint32_t line, const std::string& text) : std::runtime_error("line " + std::to_string(line) + ": " + text) {}
};

struct Token {
    enum class Kind : uint8_t { Word, Integer, Float32, Float64, String, Sign, End };
    Kind kind = Kind::End;
    std::string_view text;  // of a string: without the quotes
    uint64_t bits = 0;      // an integer, or the bits of a float
    uint32_t line = 0;

    bool is(std::string_view expected) const { return kind != Kind::String && text == expected; }
};

// All tokens, followed by one of kind End. They refer to the text.
std::vector<Token> tokenize(std::string_view text);

}  // namespace weft::emulator::ptx

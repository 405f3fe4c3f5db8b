// Cuts IR text into tokens, for the parser.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "types/type.h"

namespace weft::ir {

struct Token {
    enum class Kind {
        word,         // add  cmp.lt  f32
        value,        // %name (text is without '%')
        symbol,       // @name or @"any text" (text is without '@' and quotes)
        number,       // 12  -1.5e-3  0x7ff8  -inf
        string,       // "text", unescaped
        punctuation,  // one character
        end,
    } kind;
    std::string text;
    std::size_t begin, end;  // in the source text
    int line, column;        // counted from 1
    std::string location;    // "path:line" if the token is the first of a line that ends in "// path:line"
};

// The last token is of kind end. Throws UsageError if the text holds no valid token at some place.
std::vector<Token> tokenize(std::string_view text);

// The number of a constant of this scalar. Throws UsageError.
Number number_of(const Token& token, Scalar scalar);
// The NaN with these bits, 0x...
Number nan_of(const Token& bits);

// For messages: "'add'", "the end of the text".
std::string describe(const Token& token);

[[noreturn]] void fail_at(int line, int column, const std::string& message);

}  // namespace weft::ir

#include "ptx/token.h"

#include <bit>
#include <cstdlib>

namespace weft::emulator::ptx {

namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || c == '%'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

int digit_value(char c) {
    if (is_digit(c)) return c - '0';
    if (c >= 'a' && c <= 'z') return c - 'a' + 10;
    if (c >= 'A' && c <= 'Z') return c - 'A' + 10;
    return 99;
}

class Tokenizer {
public:
    explicit Tokenizer(std::string_view text) : text_(text) {}

    std::vector<Token> all() {
        std::vector<Token> tokens;
        for (;;) {
            skip();
            tokens.push_back(next());
            if (tokens.back().kind == Token::Kind::End) return tokens;
        }
    }

private:
    char peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

    // Skips spaces, comments, and the NUL that the driver requires after the text.
    void skip() {
        while (at_ < text_.size()) {
            const char c = text_[at_];
            if (c == '\n') ++line_;
            if (c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\0' || c == '\f') {
                ++at_;
            } else if (c == '/' && peek(1) == '/') {
                while (at_ < text_.size() && text_[at_] != '\n') ++at_;
            } else if (c == '/' && peek(1) == '*') {
                skip_block();
            } else {
                return;
            }
        }
    }

    void skip_block() {
        const uint32_t begin = line_;
        for (at_ += 2; !(peek() == '*' && peek(1) == '/'); ++at_) {
            if (at_ >= text_.size()) throw Error(begin, "a comment begins with /* and does not end");
            if (text_[at_] == '\n') ++line_;
        }
        at_ += 2;
    }

    Token next() {
        Token token{.line = line_};
        if (at_ >= text_.size()) return token;
        const size_t begin = at_;
        const char c = peek();
        if (is_letter(c) || (c == '.' && is_letter(peek(1)))) {
            token.kind = Token::Kind::Word;
            word();
        } else if (is_digit(c)) {
            number(token);
        } else if (c == '"') {
            const size_t end = text_.find_first_of("\"\n", at_ + 1);
            if (end == std::string_view::npos || text_[end] != '"') throw Error(line_, "a string has no end");
            at_ = end + 1;
            token.kind = Token::Kind::String;
            token.text = text_.substr(begin + 1, end - begin - 1);
            return token;
        } else {
            token.kind = Token::Kind::Sign;
            ++at_;
        }
        token.text = text_.substr(begin, at_ - begin);
        return token;
    }

    void word() {
        if (peek() == '.') ++at_;
        const bool directive = at_ > 0 && text_[at_ - 1] == '.';
        for (;;) {
            while (is_letter(peek()) || is_digit(peek())) ++at_;
            // words continue after "::" (".L1::no_allocate", ".L2::128B"), and after "." unless they are directives
            if (peek() == ':' && peek(1) == ':' && (is_letter(peek(2)) || is_digit(peek(2)))) {
                at_ += 2;
            } else if (!directive && peek() == '.' && (is_letter(peek(1)) || is_digit(peek(1)))) {
                ++at_;
            } else {
                return;
            }
        }
    }

    void number(Token& token) {
        const char kind = peek(1);
        if (peek() == '0' && (kind == 'f' || kind == 'F' || kind == 'd' || kind == 'D')) {
            const bool single = kind == 'f' || kind == 'F';
            token.kind = single ? Token::Kind::Float32 : Token::Kind::Float64;
            at_ += 2;
            const size_t begin = at_;
            token.bits = digits(16);
            if (at_ - begin != (single ? 8u : 16u)) throw Error(line_, "a float has 8 hexadecimal digits, a double 16");
            return;
        }
        token.kind = Token::Kind::Integer;
        if (peek() == '0' && (kind == 'x' || kind == 'X' || kind == 'b' || kind == 'B')) {
            at_ += 2;
            token.bits = digits(kind == 'x' || kind == 'X' ? 16 : 2);
        } else {
            size_t end = at_;
            while (end < text_.size() && is_digit(text_[end])) ++end;
            const char after = end < text_.size() ? text_[end] : '\0';
            if (after == '.' || after == 'e' || after == 'E') return decimal(token);
            token.bits = digits(peek() == '0' ? 8 : 10);
        }
        if (peek() == 'U') ++at_;
    }

    uint64_t digits(unsigned base) {
        uint64_t value = 0;
        const size_t begin = at_;
        while (digit_value(peek()) < int(base)) {
            if (value > (UINT64_MAX - digit_value(peek())) / base) throw Error(line_, "a number has more than 64 bits");
            value = value * base + digit_value(text_[at_++]);
        }
        if (begin == at_) throw Error(line_, "a number has no digits");
        return value;
    }

    // A decimal float is a double, as in C. The digits are copied: strtod needs an end.
    void decimal(Token& token) {
        size_t end = at_;
        while (end < text_.size() && end - at_ < 64 && (is_digit(text_[end]) || text_[end] == '.')) ++end;
        if (end < text_.size() && (text_[end] == 'e' || text_[end] == 'E')) {
            ++end;
            if (end < text_.size() && (text_[end] == '+' || text_[end] == '-')) ++end;
            while (end < text_.size() && end - at_ < 80 && is_digit(text_[end])) ++end;
        }
        token.kind = Token::Kind::Float64;
        token.bits = std::bit_cast<uint64_t>(std::strtod(std::string(text_.substr(at_, end - at_)).c_str(), nullptr));
        at_ = end;
    }

    std::string_view text_;
    size_t at_ = 0;
    uint32_t line_ = 1;
};

}  // namespace

std::vector<Token> tokenize(std::string_view text) { return Tokenizer(text).all(); }

}  // namespace weft::emulator::ptx

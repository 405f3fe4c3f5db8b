#include "ir/tokens.h"

#include "ir/text.h"
#include "support/error.h"

namespace weft::ir {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

class Tokenizer {
public:
    explicit Tokenizer(std::string_view text) : text_(text) {}

    std::vector<Token> all() {
        while (true) {
            skip();
            if (at_ == text_.size()) break;
            one();
        }
        add(Token::Kind::end, "", at_);
        return std::move(tokens_);
    }

private:
    char here(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
    int column(std::size_t at) const { return static_cast<int>(at - line_start_) + 1; }

    void add(Token::Kind kind, std::string text, std::size_t begin) {
        tokens_.push_back({kind, std::move(text), begin, at_, line_, column(begin), {}});
        if (first_of_line_ == kNone) first_of_line_ = tokens_.size() - 1;
    }

    void skip() {
        while (at_ < text_.size()) {
            if (here() == '\n') {
                ++at_;
                ++line_;
                line_start_ = at_;
                first_of_line_ = kNone;
            } else if (here() == ' ' || here() == '\t' || here() == '\r') {
                ++at_;
            } else if (here() == '/' && here(1) == '/') {
                comment();
            } else {
                return;
            }
        }
    }

    // A comment that ends in ":digits" is the source position of its line; any other is for readers.
    void comment() {
        std::size_t end = text_.find('\n', at_);
        if (end == std::string_view::npos) end = text_.size();
        std::string_view said = text_.substr(at_ + 2, end - at_ - 2);
        at_ = end;
        if (said.starts_with(' ')) said.remove_prefix(1);
        std::size_t digits = said.size();
        while (digits > 0 && is_digit(said[digits - 1])) --digits;
        if (digits == said.size() || said.size() - digits > 9 || digits < 2 || said[digits - 1] != ':') return;
        if (first_of_line_ != kNone) tokens_[first_of_line_].location = said;
    }

    void one() {
        const std::size_t begin = at_;
        const char c = here();
        if (c == '%') {
            ++at_;
            add(Token::Kind::value, name(), begin);
            if (tokens_.back().text.empty()) fail_at(line_, column(begin), "expected a name after '%'");
        } else if (c == '@') {
            ++at_;
            const std::string text = here() == '"' ? quoted() : name();
            add(Token::Kind::symbol, text, begin);
        } else if (c == '"') {
            const std::string text = quoted();
            add(Token::Kind::string, text, begin);
        } else if (is_digit(c) || (c == '-' && (is_digit(here(1)) || here(1) == 'i'))) {
            ++at_;
            // Signs belong to a number right after the e of its exponent only.
            while (
                is_word_character(here()) || here() == '.' ||
                ((here() == '-' || here() == '+') && text_[at_ - 1] == 'e' && !text_.substr(begin).starts_with("0x"))) {
                ++at_;
            }
            add(Token::Kind::number, std::string(text_.substr(begin, at_ - begin)), begin);
        } else if (is_word_character(c)) {
            add_word(begin);
        } else {
            ++at_;
            add(Token::Kind::punctuation, std::string(1, c), begin);
        }
    }

    void add_word(std::size_t begin) {
        std::string text = name();
        add(Token::Kind::word, std::move(text), begin);
    }

    std::string name() {
        const std::size_t begin = at_;
        while (is_word_character(here()) || here() == '.') ++at_;
        return std::string(text_.substr(begin, at_ - begin));
    }

    std::string quoted() {
        const std::size_t begin = at_++;
        std::string text;
        while (here() != '"') {
            if (at_ >= text_.size() || here() == '\n') fail_at(line_, column(begin), "the text in quotes does not end");
            if (here() != '\\') {
                text += text_[at_++];
                continue;
            }
            ++at_;
            switch (const char escaped = here()) {
                case 'n':
                    text += '\n';
                    break;
                case 'x': {
                    const int high = hex_digit(here(1)), low = hex_digit(here(2));
                    if (high < 0 || low < 0) fail_at(line_, column(at_), "expected two hexadecimal digits after \\x");
                    text += static_cast<char>(high * 16 + low);
                    at_ += 2;
                    break;
                }
                case '"':
                case '\\':
                    text += escaped;
                    break;
                default:
                    fail_at(line_, column(at_), "expected \\n, \\x, \\\" or \\\\");
            }
            ++at_;
        }
        ++at_;
        return text;
    }

    static int hex_digit(char c) {
        if (is_digit(c)) return c - '0';
        return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    }

    static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
    std::string_view text_;
    std::vector<Token> tokens_;
    std::size_t at_ = 0;
    int line_ = 1;
    std::size_t line_start_ = 0;
    std::size_t first_of_line_ = kNone;
};

}  // namespace

std::vector<Token> tokenize(std::string_view text) { return Tokenizer(text).all(); }

std::string describe(const Token& token) {
    switch (token.kind) {
        case Token::Kind::end:
            return "the end of the text";
        case Token::Kind::value:
            return "'%" + token.text + "'";
        case Token::Kind::symbol:
            return "'@" + token.text + "'";
        default:
            return "'" + token.text + "'";
    }
}

void fail_at(int line, int column, const std::string& message) {
    throw UsageError("parse()", std::to_string(line) + ":" + std::to_string(column) + ": " + message,
                     ErrorCategory::syntax);
}

}  // namespace weft::ir

// The parser for the names that Type::ir_name() writes.
#include <algorithm>
#include <cctype>
#include <charconv>

#include "types/type.h"

namespace weft {
namespace {

class Reader {
public:
    Reader(std::string_view text, const FindStruct& find) : text_(text), find_(find) {}

    std::optional<Type> whole() {
        const std::optional<Type> type = any();
        skip_space();
        return at_ == text_.size() ? type : std::nullopt;
    }

private:
    // word '<' ... '>' | 'struct' '@' name | scalar
    std::optional<Type> any() {
        skip_space();
        const std::string_view word = take_word();
        for (const ScalarInfo& scalar : all_scalars())
            if (word == scalar.ir) return Type::scalar(scalar.id);
        if (word == "none") return Type::none();
        if (word == "string") return Type::string();
        if (word == "struct") return structure();
        if (!take('<')) return std::nullopt;
        if (word == "tuple") return tuple();
        if (word == "array") return array();
        if (word == "tile") return tile();
        return numeric(word);
    }

    std::optional<Type> structure() {
        skip_space();
        if (!take('@')) return std::nullopt;
        const std::size_t start = at_;
        while (at_ < text_.size() &&
               (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_' || text_[at_] == '.')) {
            ++at_;
        }
        return find_(text_.substr(start, at_ - start));
    }

    std::optional<Type> tuple() {
        std::vector<Type> elements;
        if (take('>')) return Type::tuple({});
        do {
            const std::optional<Type> element = any();
            if (!element) return std::nullopt;
            elements.push_back(*element);
        } while (take(','));
        if (!take('>')) return std::nullopt;
        return Type::tuple(std::move(elements));
    }

    std::optional<Type> array() {
        const std::optional<Type> element = any();
        if (!element || !take(',')) return std::nullopt;
        skip_space();
        const std::optional<int> ndim = number(take_word());
        if (!ndim || !take('>')) return std::nullopt;
        return Type::array(*element, *ndim);
    }

    // '<' element ',' extent { 'x' extent } '>'
    std::optional<Type> tile() {
        const std::optional<Type> element = any();
        if (!element || !take(',')) return std::nullopt;
        skip_space();
        std::string_view extents = take_word();
        std::vector<std::int64_t> shape;
        while (!extents.empty()) {
            const std::size_t end = std::min(extents.find('x'), extents.size());
            const std::optional<int> extent = number(extents.substr(0, end));
            if (!extent || *extent < 1) return std::nullopt;
            shape.push_back(*extent);
            extents.remove_prefix(std::min(end + 1, extents.size()));
        }
        if (shape.empty() || !take('>')) return std::nullopt;
        return Type::tile(*element, std::move(shape));
    }

    std::optional<Type> numeric(std::string_view word) {
        const std::optional<Type> scalar = any();
        if (!scalar || !scalar->is_scalar() || !take('>')) return std::nullopt;
        if (word == "quat") return Type::quaternion(scalar->scalar());
        if (word == "xform") return Type::transform(scalar->scalar());
        if (word.starts_with("vec")) {
            const std::optional<int> length = number(word.substr(3));
            if (!length || *length < 1) return std::nullopt;
            return Type::vector(scalar->scalar(), *length);
        }
        if (word.starts_with("mat")) {
            const std::size_t x = word.find('x');
            if (x == std::string_view::npos) return std::nullopt;
            const std::optional<int> rows = number(word.substr(3, x - 3)), cols = number(word.substr(x + 1));
            if (!rows || !cols || *rows < 1 || *cols < 1) return std::nullopt;
            return Type::matrix(scalar->scalar(), *rows, *cols);
        }
        return std::nullopt;
    }

    static std::optional<int> number(std::string_view digits) {
        int value = 0;
        const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
        if (error != std::errc() || end != digits.data() + digits.size() || value >= 1 << 24) return std::nullopt;
        return value < 0 ? std::nullopt : std::optional(value);
    }

    std::string_view take_word() {
        const std::size_t start = at_;
        while (at_ < text_.size() && std::isalnum(static_cast<unsigned char>(text_[at_]))) ++at_;
        return text_.substr(start, at_ - start);
    }

    bool take(char wanted) {
        skip_space();
        if (at_ >= text_.size() || text_[at_] != wanted) return false;
        ++at_;
        return true;
    }

    void skip_space() {
        while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    }

    std::string_view text_;
    const FindStruct& find_;
    std::size_t at_ = 0;
};

}  // namespace

std::optional<Type> parse_ir_type(std::string_view text, const FindStruct& find) { return Reader(text, find).whole(); }

std::optional<Type> parse_ir_type(std::string_view text) { return parse_ir_type(text, find_struct_type); }

}  // namespace weft

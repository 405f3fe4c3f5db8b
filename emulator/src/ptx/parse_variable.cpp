#include <algorithm>
#include <bit>
#include <cstring>

#include "ptx/parser.h"

namespace weft::emulator::ptx {

namespace {

constexpr uint64_t kLargest = uint64_t(1) << 40;  // bytes of a variable

void put(std::vector<uint8_t>& bytes, uint64_t offset, uint64_t value, uint32_t size) {
    if (bytes.size() < offset + size) bytes.resize(offset + size);
    for (uint32_t i = 0; i < size; ++i) bytes[offset + i] = uint8_t(value >> (8 * i));
}

}  // namespace

// [.align n] .type name [dimensions] [= initialiser], after the name of the space. Parameters may have .ptr and more in
// between.
Variable Parser::variable(Space space) {
    Variable made{.space = space, .line = token().line};
    Type element;
    uint64_t vector = 1;
    for (; token().kind == Token::Kind::Word && token().text.front() == '.'; take()) {
        const std::string_view word = token().text;
        if (word == ".align") {
            take();
            if (token().kind != Token::Kind::Integer) fail("expected an alignment");
            // after .ptr it is the alignment of the pointer's target
            if (!element.bits) made.align = token().bits;
        } else if (word == ".v2" || word == ".v4") {
            vector = word == ".v2" ? 2 : 4;
        } else if (word == ".ptr" || word == ".global" || word == ".shared" || word == ".const" || word == ".local" ||
                   word == ".generic" || word == ".managed" || word == ".unified") {
            continue;
        } else {
            element = type_of(word.substr(1));
            if (!element.bits || element.kind == Type::Kind::Predicate) fail("expected the type of a variable");
        }
    }
    if (!element.bits) fail("expected the type of a variable");
    made.name = name("the name of a variable");
    made.align = std::max<uint64_t>({made.align, 1, element.bytes() * vector});
    if (!std::has_single_bit(made.align) || made.align > 65536) fail("an alignment is a power of 2");
    made.size = element.bytes() * vector;
    while (accept("[")) {
        if (accept("]")) {
            made.unsized = true;
            continue;
        }
        const uint64_t count = integer("the size of an array");
        if (count > kLargest / std::max<uint64_t>(made.size, 1)) fail("the array is too large");
        made.size *= count;
        expect("]");
    }
    if (accept("=")) initialiser(made, element);
    if (made.unsized) made.size = made.bytes.size();
    if (made.bytes.size() > made.size) fail("'" + made.name + "' has more initial values than elements");
    return made;
}

void Parser::initialiser(Variable& variable, Type element) {
    uint64_t offset = 0;
    if (!token().is("{")) return initial_value(variable, element, offset);
    // Nested braces are rows: LLVM writes one row of bytes, in the same order.
    int depth = 0;
    do {
        if (accept("{")) {
            ++depth;
        } else if (accept("}")) {
            --depth;
        } else if (!accept(",")) {
            initial_value(variable, element, offset);
        }
    } while (depth > 0);
}

// A number, a symbol, generic(symbol), symbol+number; "0xFF(symbol)" picks one byte of an address.
void Parser::initial_value(Variable& variable, Type element, uint64_t& offset) {
    const uint32_t bytes = element.bytes();
    if (offset > kLargest) fail("the array is too large");
    if (token().kind == Token::Kind::Float32 || token().kind == Token::Kind::Float64) {
        const bool narrows = token().kind == Token::Kind::Float64 && bytes == 4;
        const uint64_t bits = take().bits;
        put(variable.bytes, offset, narrows ? std::bit_cast<uint32_t>(float(std::bit_cast<double>(bits))) : bits,
            bytes);
    } else if (token().kind == Token::Kind::Integer && token(1).is("(")) {
        fail("parts of addresses in initial values are not supported");
    } else if (token().kind == Token::Kind::Integer || token().is("-")) {
        put(variable.bytes, offset, uint64_t(signed_integer("a number")), bytes);
    } else {
        const uint32_t line = token().line;
        const bool generic = accept("generic");
        if (generic) expect("(");
        std::string symbol(name("a number or a symbol"));
        if (generic) expect(")");
        int64_t addend = 0;
        if (accept("+"))
            addend = signed_integer("a number");
        else if (token().is("-"))
            addend = signed_integer("a number");
        put(variable.bytes, offset, 0, bytes);
        variable.relocations.push_back({offset, std::move(symbol), addend, bytes, line});
    }
    offset += bytes;
}

uint32_t Parser::add_variable(Function& function, Variable variable) {
    function.variables.push_back(std::move(variable));
    return uint32_t(function.variables.size() - 1);
}

uint32_t Parser::parameter(Function& function) {
    if (!accept(".param") && !accept(".reg")) fail("expected .param");
    const size_t begin = at_;
    Variable made = variable(Space::Param);
    // the name within the text, since the map has views of it
    std::string_view text;
    for (size_t i = begin; i < at_; ++i) {
        if (tokens_[i].text == made.name) text = tokens_[i].text;
    }
    const uint32_t index = add_variable(function, std::move(made));
    scopes_.back().variables[text] = index;
    return index;
}

std::vector<uint32_t> Parser::parameters(Function& function) {
    std::vector<uint32_t> indices;
    expect("(");
    while (!accept(")")) {
        if (!indices.empty()) expect(",");
        indices.push_back(parameter(function));
    }
    return indices;
}

}  // namespace weft::emulator::ptx

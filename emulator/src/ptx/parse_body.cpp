#include <algorithm>
#include <charconv>

#include "ptx/parser.h"

namespace weft::emulator::ptx {

namespace {

constexpr size_t kMostRegisters = 1 << 20;
constexpr int kDeepest = 4;  // nesting of operands

}  // namespace

void Parser::body(Function& function) {
    expect("{");
    scopes_.emplace_back();
    while (scopes_.size() > 1) statement(function);
    scopes_.clear();
}

void Parser::statement(Function& function) {
    if (accept("{")) {
        if (scopes_.size() > 64) fail("braces are nested too deeply");
        scopes_.emplace_back();
        return;
    }
    if (accept("}")) {
        scopes_.pop_back();
        return;
    }
    if (accept(";")) return;
    if (token().kind == Token::Kind::Word && token().text.front() == '.') return directive(function);
    if (token().kind == Token::Kind::Word && token(1).is(":")) {
        const std::string_view label = take().text;
        take();
        if (accept(".branchtargets")) return branch_targets(function, label);
        if (accept(".callprototype")) return call_prototype(label);
        if (!function.labels.emplace(label, uint32_t(function.statements.size())).second) {
            fail("the label '" + std::string(label) + "' stands twice");
        }
        return;
    }
    instruction(function);
}

void Parser::directive(Function& function) {
    if (accept(".reg")) return registers(function);
    if (accept(".loc")) return line_of_source();
    if (accept(".file")) return file();
    if (token().is(".section")) return section();
    if (accept(".pragma")) {
        take();
        expect(";");
        return;
    }
    const Token& word = take();
    const Space space = word.is(".param")    ? Space::Param
                        : word.is(".local")  ? Space::Local
                        : word.is(".shared") ? Space::Shared
                        : word.is(".global") ? Space::Global
                        : word.is(".const")  ? Space::Const
                                             : Space::Generic;
    if (space == Space::Generic) {
        --at_;
        fail("expected .reg, .param, .local, .shared, .loc or another directive of a body");
    }
    do {
        const size_t begin = at_;
        Variable made = variable(space);
        std::string_view text;
        for (size_t i = begin; i < at_; ++i) {
            if (tokens_[i].text == made.name) text = tokens_[i].text;
        }
        const uint32_t index = add_variable(function, std::move(made));
        scopes_.back().variables[text] = index;
    } while (accept(","));
    expect(";");
}

void Parser::registers(Function& function) {
    if (token().kind != Token::Kind::Word) fail("expected the type of registers");
    const Type type = type_of(take().text.substr(1));
    if (!type.bits || type.bits == 8)
        fail("expected the type of registers before this: .pred, .b16, .b32, .b64 or the like");
    do {
        const std::string_view text = name("the name of a register");
        const uint32_t first = uint32_t(function.registers.size());
        uint64_t count = 1;
        if (accept("<")) {
            count = integer("a number of registers");
            expect(">");
            scopes_.back().ranges.push_back({text, first, uint32_t(std::min<uint64_t>(count, kMostRegisters))});
        } else {
            scopes_.back().registers[text] = first;
        }
        if (count > kMostRegisters - first) fail("a function has more than a million registers");
        function.registers.resize(first + count, type);
    } while (accept(","));
    expect(";");
}

void Parser::line_of_source() {
    file_ = uint32_t(integer("the number of a file"));
    const uint32_t line = uint32_t(integer("a line"));
    // line 0: code without a line keeps the previous one
    if (line) source_line_ = line;
    integer("a column");
    while (accept(",")) {
        if (accept("function_name")) {
            name("a label");
            if (accept("+")) integer("an offset");
        } else if (accept("inlined_at")) {
            integer("the number of a file");
            integer("a line");
            integer("a column");
        } else {
            fail("expected function_name or inlined_at");
        }
    }
}

void Parser::branch_targets(Function& function, std::string_view label) {
    std::vector<std::string_view>& targets = function.targets[label];
    do {
        targets.push_back(name("a label"));
    } while (accept(","));
    expect(";");
}

// Skipped: only the registers of its parameters would matter, and the call has these.
void Parser::call_prototype(std::string_view) {
    while (!accept(";")) {
        if (token().kind == Token::Kind::End) fail("expected ';'");
        take();
    }
}

void Parser::instruction(Function& function) {
    Statement made{.line = token().line, .file = file_, .source_line = source_line_};
    if (accept("@")) {
        made.guard_negated = accept("!");
        const std::string_view text = name("a predicate");
        const int64_t found = find_register(text);
        if (found < 0 || function.registers[size_t(found)].kind != Type::Kind::Predicate) {
            --at_;
            fail("expected a predicate");
        }
        made.guard = int32_t(found);
    }
    made.opcode = name("an instruction");
    if (!token().is(";"))
        made.operands = operand_list(function, ";");
    else
        take();
    function.statements.push_back(std::move(made));
}

std::vector<Operand> Parser::operand_list(Function& function, std::string_view end) {
    std::vector<Operand> operands;
    if (accept(end)) return operands;
    if (++depth_ > kDeepest) fail("operands are nested too deeply");
    for (;;) {
        Operand one = operand(function);
        if (accept("|")) {
            Operand pair{.kind = Operand::Kind::Pair};
            pair.parts.push_back(std::move(one));
            pair.parts.push_back(operand(function));
            one = std::move(pair);
        }
        operands.push_back(std::move(one));
        if (accept(end)) break;
        expect(",");
    }
    --depth_;
    return operands;
}

Operand Parser::operand(Function& function) {
    const Token& first = token();
    using Kind = Operand::Kind;
    if (accept("!")) {
        Operand inner = operand(function);
        if (inner.kind != Kind::Register || inner.negated) fail("expected a predicate before this");
        inner.negated = true;
        return inner;
    }
    if (accept("[")) return address(function);
    if (accept("{")) return {.kind = Kind::Vector, .parts = operand_list(function, "}")};
    if (accept("(")) return {.kind = Kind::List, .parts = operand_list(function, ")")};
    if (first.kind == Token::Kind::Integer || first.is("-")) {
        return {.kind = Kind::Integer, .bits = uint64_t(signed_integer("a number"))};
    }
    if (first.kind == Token::Kind::Float32) return {.kind = Kind::Float32, .bits = take().bits};
    if (first.kind == Token::Kind::Float64) return {.kind = Kind::Float64, .bits = take().bits};
    if (first.kind != Token::Kind::Word) fail("expected an operand");
    return word_operand(function, take());
}

Operand Parser::word_operand(Function& function, const Token& word) {
    using Kind = Operand::Kind;
    if (word.is("_")) return {.kind = Kind::Sink};
    if (const int64_t found = find_register(word.text); found >= 0)
        return {.kind = Kind::Register, .reg = uint32_t(found)};
    if (word.text.front() == '%') return {.kind = Kind::Special, .symbol = word.text};
    Operand made{.kind = Kind::Symbol, .variable = int32_t(find_variable(word.text)), .symbol = word.text};
    if (accept("+")) made.bits = uint64_t(signed_integer("an offset"));
    static_cast<void>(function);
    return made;
}

Operand Parser::address(Function& function) {
    Operand made{.kind = Operand::Kind::Address};
    if (token().kind == Token::Kind::Word) {
        const Token& word = take();
        const int64_t found = find_register(word.text);
        if (found >= 0) {
            made.has_base = true;
            made.reg = uint32_t(found);
        } else {
            made.symbol = word.text;
            made.variable = int32_t(find_variable(word.text));
        }
        if (accept("+"))
            made.bits = uint64_t(signed_integer("an offset"));
        else if (token().is("-"))
            made.bits = uint64_t(signed_integer("an offset"));
    } else {
        made.bits = uint64_t(signed_integer("an address"));
    }
    expect("]");
    static_cast<void>(function);
    return made;
}

int64_t Parser::find_register(std::string_view name) const {
    size_t digits = name.size();
    while (digits > 0 && name[digits - 1] >= '0' && name[digits - 1] <= '9') --digits;
    uint64_t number = UINT64_MAX;
    std::from_chars(name.data() + digits, name.data() + name.size(), number);
    for (size_t i = scopes_.size(); i-- > 0;) {
        const Scope& scope = scopes_[i];
        if (const auto found = scope.registers.find(name); found != scope.registers.end()) return found->second;
        // a prefix may itself end in a digit: "%r1" and "<5>" is "%r10" too
        for (const Range& range : scope.ranges) {
            if (range.prefix.size() == digits && name.starts_with(range.prefix)) {
                if (number < range.count) return range.first + int64_t(number);
            } else if (range.prefix.size() > digits && name.starts_with(range.prefix)) {
                uint64_t rest = UINT64_MAX;
                std::from_chars(name.data() + range.prefix.size(), name.data() + name.size(), rest);
                if (rest < range.count) return range.first + int64_t(rest);
            }
        }
    }
    return -1;
}

int64_t Parser::find_variable(std::string_view name) const {
    for (size_t i = scopes_.size(); i-- > 0;) {
        if (const auto found = scopes_[i].variables.find(name); found != scopes_[i].variables.end())
            return found->second;
    }
    return -1;
}

}  // namespace weft::emulator::ptx

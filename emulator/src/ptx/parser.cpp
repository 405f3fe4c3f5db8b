#include "ptx/parser.h"

#include <algorithm>
#include <charconv>

namespace weft::emulator::ptx {

void Parser::fail(const std::string& what) const {
    const Token& found = token();
    throw Error(found.line,
                what + "; found " +
                    (found.kind == Token::Kind::End ? "the end of the text" : "'" + std::string(found.text) + "'"));
}

bool Parser::accept(std::string_view text) {
    if (!token().is(text)) return false;
    take();
    return true;
}

const Token& Parser::expect(std::string_view text) {
    if (!token().is(text)) fail("expected '" + std::string(text) + "'");
    return take();
}

std::string_view Parser::name(const char* what) {
    if (token().kind != Token::Kind::Word || token().text.front() == '.') fail(std::string("expected ") + what);
    return take().text;
}

uint64_t Parser::integer(const char* what) {
    if (token().kind != Token::Kind::Integer) fail(std::string("expected ") + what);
    return take().bits;
}

int64_t Parser::signed_integer(const char* what) {
    const bool negative = accept("-");
    const uint64_t value = integer(what);
    return int64_t(negative ? 0 - value : value);
}

Type type_of(std::string_view name) {
    using Kind = Type::Kind;
    static const std::unordered_map<std::string_view, Type> types = {
        {"pred", {Kind::Predicate, 1}}, {"b8", {Kind::Bits, 8}},          {"b16", {Kind::Bits, 16}},
        {"b32", {Kind::Bits, 32}},      {"b64", {Kind::Bits, 64}},        {"b128", {Kind::Bits, 128}},
        {"u8", {Kind::Unsigned, 8}},    {"u16", {Kind::Unsigned, 16}},    {"u32", {Kind::Unsigned, 32}},
        {"u64", {Kind::Unsigned, 64}},  {"s8", {Kind::Signed, 8}},        {"s16", {Kind::Signed, 16}},
        {"s32", {Kind::Signed, 32}},    {"s64", {Kind::Signed, 64}},      {"f16", {Kind::Float, 16}},
        {"f32", {Kind::Float, 32}},     {"f64", {Kind::Float, 64}},       {"f16x2", {Kind::Float, 32, 2}},
        {"bf16", {Kind::Brain, 16}},    {"bf16x2", {Kind::Brain, 32, 2}},
    };
    const auto found = types.find(name);
    return found == types.end() ? Type{} : found->second;
}

void Parser::module() {
    while (token().kind != Token::Kind::End) declaration();
    if (!module_.version) throw Error(1, "a module begins with .version; this one has none");
    if (module_.target.empty()) throw Error(1, "a module names its .target; this one does not");
}

void Parser::header(std::string_view directive) {
    if (directive == ".version") {
        // "8.8" was read as a decimal float, so its text is parsed again
        const std::string_view text = take().text;
        const size_t dot = text.find('.');
        int major = 0, minor = 0;
        std::from_chars(text.data(), text.data() + text.size(), major);
        if (dot != std::string_view::npos) std::from_chars(text.data() + dot + 1, text.data() + text.size(), minor);
        module_.version = std::clamp(major, 0, 999) * 10 + std::clamp(minor, 0, 9);
        if (!module_.version) fail("expected a version such as 8.0");
    } else if (directive == ".target") {
        module_.target = name("a target such as sm_80");
        while (accept(",")) name("a property of the target");
        const std::string_view digits =
            std::string_view(module_.target).substr(std::min<size_t>(3, module_.target.size()));
        std::from_chars(digits.data(), digits.data() + digits.size(), module_.architecture);
        if (!module_.target.starts_with("sm_") || module_.architecture <= 0) fail("expected a target such as sm_80");
    } else {
        if (token().text != "64") fail("addresses have 64 bits");
        take();
    }
}

void Parser::file() {
    const uint64_t number = integer("the number of a file");
    if (token().kind != Token::Kind::String) fail("expected the name of a file");
    module_.files[uint32_t(number)] = take().text;
    while (accept(",")) take();
}

void Parser::skip_braces() {
    expect("{");
    for (int depth = 1; depth > 0;) {
        if (token().kind == Token::Kind::End) fail("expected '}'");
        if (token().is("{")) ++depth;
        if (token().is("}")) --depth;
        take();
    }
}

// Debug information is skipped, as .loc has the lines.
void Parser::section() {
    take();
    skip_braces();
}

void Parser::declaration() {
    bool external = false, visible = false;
    for (;;) {
        const Token& word = token();
        if (accept(";")) return;
        if (word.kind != Token::Kind::Word) fail("expected a directive");
        take();
        if (word.is(".version") || word.is(".target") || word.is(".address_size")) return header(word.text);
        if (word.is(".file")) return file();
        if (word.is(".section")) return section();
        if (word.is(".pragma")) {
            while (!accept(";")) {
                if (token().kind == Token::Kind::End) fail("expected ';'");
                take();
            }
            return;
        }
        if (word.is(".extern")) {
            external = true;
        } else if (word.is(".visible") || word.is(".weak") || word.is(".common")) {
            visible = true;
        } else if (word.is(".entry") || word.is(".func")) {
            --at_;
            return function(external);
        } else if (word.is(".global") || word.is(".const") || word.is(".shared")) {
            do {
                Variable made = variable(word.is(".global")  ? Space::Global
                                         : word.is(".const") ? Space::Const
                                                             : Space::Shared);
                made.external = external;
                made.visible = visible;
                module_.variables.push_back(std::move(made));
            } while (accept(","));
            expect(";");
            return;
        } else {
            --at_;
            fail("expected .func, .entry, .global, .const, .shared or another directive of a module");
        }
    }
}

void Parser::function(bool external) {
    Function made;
    made.line = token().line;
    made.entry = take().is(".entry");
    scopes_.assign(1, {});
    if (!made.entry && token().is("(")) made.returns = parameters(made);
    made.name = name("the name of a function");
    if (token().is("(")) made.parameters = parameters(made);
    function_options(made);
    if (!accept(";")) {
        if (external) fail("an .extern function has no body: expected ';'");
        made.defined = true;
        body(made);
    }
    module_.functions.push_back(std::move(made));
}

void Parser::function_options(Function& function) {
    for (;;) {
        uint32_t* threads = nullptr;
        if (accept(".noreturn")) continue;
        if (accept(".maxntid")) {
            threads = function.max_threads;
        } else if (accept(".reqntid")) {
            threads = function.required_threads;
        } else if (accept(".maxnreg")) {
            function.max_registers = uint32_t(integer("a number of registers"));
            continue;
        } else if (accept(".minnctapersm") || accept(".maxnctapersm")) {
            integer("a number");
            continue;
        } else if (accept(".pragma")) {
            take();
            accept(";");
            continue;
        } else {
            return;
        }
        threads[0] = threads[1] = threads[2] = 1;
        for (int axis = 0; axis == 0 || (axis < 3 && accept(",")); ++axis)
            threads[axis] = uint32_t(integer("a number of threads"));
    }
}

Module parse(std::string text) {
    Module module;
    module.text = std::move(text);
    if (module.text.capacity() < 32)
        module.text.reserve(32);  // a short string would move its characters with the module
    Parser(module).module();
    return module;
}

}  // namespace weft::emulator::ptx

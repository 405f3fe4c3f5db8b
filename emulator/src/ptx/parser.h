#pragma once
// The parser of PTX, in three files: declarations of the module (parser.cpp), variables (parse_variable.cpp), bodies of
// functions (parse_body.cpp).
#include <memory>

#include "ptx/module.h"
#include "ptx/token.h"

namespace weft::emulator::ptx {

class Parser {
public:
    explicit Parser(Module& module) : module_(module), tokens_(tokenize(module.text)) {}

    void module();

private:
    // Registers and variables of one pair of braces. "%r<24>" is a range.
    struct Range {
        std::string_view prefix;
        uint32_t first, count;
    };
    struct Scope {
        std::unordered_map<std::string_view, uint32_t> registers, variables;
        std::vector<Range> ranges;
    };

    const Token& token(size_t ahead = 0) const { return tokens_[std::min(at_ + ahead, tokens_.size() - 1)]; }
    const Token& take() { return tokens_[at_ < tokens_.size() - 1 ? at_++ : at_]; }
    bool accept(std::string_view text);
    const Token& expect(std::string_view text);
    std::string_view name(const char* what);
    uint64_t integer(const char* what);
    int64_t signed_integer(const char* what);
    [[noreturn]] void fail(const std::string& what) const;

    // parser.cpp
    void header(std::string_view directive);
    void file();
    void section();
    void skip_braces();
    void declaration();
    void function(bool external);
    void function_options(Function& function);

    // parse_variable.cpp
    Variable variable(Space space);
    void initialiser(Variable& variable, Type element);
    void initial_value(Variable& variable, Type element, uint64_t& offset);
    uint32_t parameter(Function& function);
    std::vector<uint32_t> parameters(Function& function);

    // parse_body.cpp
    void body(Function& function);
    void statement(Function& function);
    void directive(Function& function);
    void registers(Function& function);
    void line_of_source();
    void branch_targets(Function& function, std::string_view label);
    void call_prototype(std::string_view label);
    void instruction(Function& function);
    Operand operand(Function& function);
    Operand address(Function& function);
    Operand word_operand(Function& function, const Token& word);
    std::vector<Operand> operand_list(Function& function, std::string_view end);
    int64_t find_register(std::string_view name) const;
    int64_t find_variable(std::string_view name) const;
    uint32_t add_variable(Function& function, Variable variable);

    Module& module_;
    std::vector<Token> tokens_;
    size_t at_ = 0;
    std::vector<Scope> scopes_;
    int depth_ = 0;  // nesting of operands
    uint32_t file_ = 0, source_line_ = 0;
};

}  // namespace weft::emulator::ptx

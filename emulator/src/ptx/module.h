#pragma once
// A PTX module as written: variables, functions, statements. Registers are already numbered within their function,
// because their names depend on scopes; engine/decoder.h decodes everything else.
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace weft::emulator::ptx {

enum class Space : uint8_t { Generic, Register, Global, Shared, Local, Param, Const };

// The types of PTX by width and kind. A register has only a width; the width 1 is that of a predicate.
struct Type {
    enum class Kind : uint8_t { Bits, Unsigned, Signed, Float, Brain, Predicate };
    Kind kind = Kind::Bits;
    uint16_t bits = 0;  // 0: no type
    uint8_t lanes = 1;  // 2: f16x2, bf16x2
    uint32_t bytes() const { return bits / 8; }
};

// "u32" → its type; bits are 0 if the name is no type's.
Type type_of(std::string_view name);

struct Relocation {
    uint64_t offset;     // in the variable
    std::string symbol;  // a variable or a function
    int64_t addend;
    uint32_t bytes;  // width of the element
    uint32_t line;
};

struct Variable {
    std::string name;
    Space space = Space::Global;
    uint64_t size = 0;  // bytes
    uint64_t align = 1;
    bool external = false;
    bool unsized = false;  // extern .shared a[]: its size is given by the launch
    bool visible = false;
    std::vector<uint8_t> bytes;  // may be shorter than size: zeros follow
    std::vector<Relocation> relocations;
    uint32_t line = 0;
};

struct Operand {
    enum class Kind : uint8_t {
        Register,
        Special,
        Integer,
        Float32,
        Float64,
        Symbol,
        Address,
        Vector,
        Pair,
        Sink,
        List
    };
    Kind kind = Kind::Integer;
    bool negated = false;        // !%p
    uint32_t reg = 0;            // Register; Address: the base, if has_base
    bool has_base = false;       // Address: the base is a register, else symbol or a number
    int32_t variable = -1;       // Symbol, Address: a variable of the function, else see symbol
    uint64_t bits = 0;           // Integer, floats; Symbol, Address: the offset
    std::string_view symbol;     // Symbol, Special, Address: the name
    std::vector<Operand> parts;  // Vector {a, b}, Pair p|q, List (a, b)
};

struct Statement {
    std::string_view opcode;
    std::vector<Operand> operands;
    int32_t guard = -1;  // register
    bool guard_negated = false;
    uint32_t line = 0;
    uint32_t file = 0, source_line = 0;  // of .loc, 0 if there was none
};

struct Function {
    std::string name;
    bool entry = false;
    bool defined = false;
    bool prototype = false;                     // .callprototype
    std::vector<Variable> variables;            // parameters, also those of calls, and the body's .local and .shared
                                                // variables
    std::vector<uint32_t> parameters, returns;  // indices into variables
    std::vector<Type> registers;
    std::vector<Statement> statements;
    std::unordered_map<std::string_view, uint32_t> labels;                        // index of the following statement
    std::unordered_map<std::string_view, std::vector<std::string_view>> targets;  // .branchtargets
    uint32_t max_threads[3] = {0, 0, 0};                                          // .maxntid
    uint32_t required_threads[3] = {0, 0, 0};                                     // .reqntid
    uint32_t max_registers = 0;                                                   // .maxnreg; 0: not given
    uint32_t line = 0;
};

struct Module {
    std::string text;  // storage of the string_views
    int version = 0;   // 10 · major + minor
    std::string target;
    int architecture = 0;  // 75 of sm_75
    std::vector<Variable> variables;
    std::vector<Function> functions;
    std::unordered_map<uint32_t, std::string> files;
};

// Throws Error.
Module parse(std::string text);

}  // namespace weft::emulator::ptx

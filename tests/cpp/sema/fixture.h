// Shared by the tests of this room: a kernel of syntax is analysed, verified, printed and run.
#pragma once

#include <gtest/gtest.h>

#include "builtins/registry.h"
#include "ir/interpreter.h"
#include "sema/tree_builder.h"
#include "support/error.h"

namespace weft::sema::test {

using ir::testing::Datum;
using ir::testing::Interpreter;
using ir::testing::Memory;

inline const Type i32 = i32_type();
inline const Type f32 = f32_type();
inline const Type f64 = f64_type();
inline const Type vec3 = Type::vector(Scalar::f32, 3);
inline const Type floats = Type::array(f32_type(), 1);
inline const Type floats2 = Type::array(f32_type(), 2);
inline const Type ints = Type::array(i32_type(), 1);
inline const Type vectors = Type::array(Type::vector(Scalar::f32, 3), 1);
inline const Type untyped = Type::none();

inline std::unique_ptr<ir::Module> analyzed(const std::shared_ptr<FunctionSource>& source,
                                            const Options& options = {}) {
    auto module = analyze(*source, options);
    ir::verify(*module);
    return module;
}

inline std::string printed(const std::shared_ptr<FunctionSource>& source) {
    return ir::print(*analyzed(source), false);
}

// The message, place and notes of the error that analysis must give.
inline std::string error_of(const std::shared_ptr<FunctionSource>& source) {
    try {
        analyze(*source);
    } catch (const CompileError& error) {
        return error.what();
    }
    return "no error";
}

// Runs a kernel whose only array parameter, the first, takes the results; further parameters are int scalars.
inline std::vector<double> run(const std::shared_ptr<FunctionSource>& source, const std::vector<double>& out,
                               const std::vector<double>& scalars = {}, Interpreter* with = nullptr) {
    const auto module = analyzed(source);
    Memory memory{{static_cast<int>(out.size())}, out};
    std::vector<Datum> arguments = {&memory};
    for (const double s : scalars) arguments.emplace_back(s);
    Interpreter fresh;
    (with ? *with : fresh).run(*module->functions[0], arguments);
    return memory.numbers();
}

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)
#define EXPECT_LACKS(text, part) EXPECT_EQ((text).find(part), std::string::npos) << (text)

}  // namespace weft::sema::test

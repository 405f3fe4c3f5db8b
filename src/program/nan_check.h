// wp.config.verify_fp: which launch, or operation on whole arrays, put the first NaN or infinity into an array.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "program/fault.h"
#include "runtime/array.h"

namespace weft::program {

// Remembers what arrays hold before something writes them; afterwards names the first element that has become NaN or
// infinite. What was so before, and what came from the host, is nobody's fault here.
class NanCheck {
public:
    // `name` is the parameter's, or that of a struct's field ("body.velocity"); arrays of other numbers are passed
    // over.
    void watch(std::string name, const runtime::Array& array);
    // Throws UsageError of `api`; `subject` is "kernel 'step'", `what` "" or "the gradient of ". Where it is known who
    // wrote such a number first, it says so.
    void check(const std::string& api, const std::string& subject, const std::string& what,
               const std::optional<Writer>& first = {}) const;

private:
    struct Watched {
        std::string name;
        runtime::Array array;
        std::vector<std::byte> before;  // the elements in C order
    };
    std::vector<Watched> watched_;
};

// Nobody where the kernel noted nothing.
std::optional<Writer> writer_of(const CompiledKernel& compiled, const Fault& not_finite);

}  // namespace weft::program

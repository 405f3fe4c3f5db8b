// wp.config.verify_fp: names the launch, or operation on whole arrays, that put the first NaN or infinity into an
// array.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "program/launch/fault.h"
#include "runtime/array.h"

namespace weft::program {

// Copies arrays before they are written, and afterwards names the first element that has become NaN or infinite.
// Numbers that were so before, or came from the host, are not reported.
class NanCheck {
public:
    // `name` is the parameter's, or that of a struct's field ("body.velocity"). Arrays without floats are ignored.
    void watch(std::string name, const runtime::Array& array);
    // Throws UsageError of `api`; `subject` is "kernel 'step'", `what` is "" or "the gradient of ". The message names
    // the writer `first` if it is known.
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

// Empty if the kernel noted no write.
std::optional<Writer> writer_of(const CompiledKernel& compiled, const Fault& not_finite);

}  // namespace weft::program

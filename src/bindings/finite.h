// wp.config.verify_fp: which launch, or operation on whole arrays, put the first NaN or infinity into an array.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "runtime/array.h"

namespace weft::bindings {

// Remembers what arrays hold before something writes them; afterwards names the first element that has become NaN or
// infinite. What was so before, and what came from the host, is nobody's fault here.
class FiniteCheck {
public:
    // `name` is the parameter's, or that of a struct's field ("body.velocity"); arrays of other numbers are passed
    // over.
    void watch(std::string name, const runtime::Array& array);
    // Throws UsageError of `api`; `culprit` is "kernel 'step'", `what` "" or "the gradient of ".
    void check(const std::string& api, const std::string& culprit, const std::string& what) const;

private:
    struct Watched {
        std::string name;
        runtime::Array array;
        std::vector<std::byte> before;  // the elements in C order
    };
    std::vector<Watched> watched_;
};

}  // namespace weft::bindings

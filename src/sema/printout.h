// The text of a print or an exception: a printf format, and operands, which are scalars of a few wide types.
#pragma once

#include <string>
#include <vector>

#include "ir/builder.h"
#include "sema/assignment_target.h"
#include "sema/value.h"
#include "sema/value_writer.h"

namespace weft::sema {

// Escapes the text for use in a printf format.
std::string escape_percent(const std::string& text);

class Printout {
public:
    explicit Printout(ir::Builder& builder, std::string begin = {})
        : format(std::move(begin)), builder_(builder), values_(builder) {}

    // Appends the value. `specification` stands after the colon of an f-string: f"{x:.3f}".
    void add(const Value& value, Span place, const std::string& specification);
    // Appends the text of wp.printf(format, ...).
    void add_printf(const std::vector<Actual>& arguments, Span span);

    std::string format;
    std::vector<ir::Value*> scalars;
    bool shows_tiles = false;

private:
    void add_tile(const Value& value, Span place, const std::string& specification);
    void add_truth(ir::Value* value);
    void add_array(ir::Value* array, Span place, const std::string& specification);
    void add_scalar(ir::Value* value, Span place, const std::string& specification);
    void add_large(ir::Value* value, Span place, const std::string& specification);

    ir::Builder& builder_;
    ValueWriter values_;
};

}  // namespace weft::sema

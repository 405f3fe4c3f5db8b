// The arguments of a tile function: matched to its parameters, and read as what they must be. Errors name the function
// and the parameter.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/tile_builder.h"
#include "sema/assignment_target.h"
#include "sema/value.h"
#include "sema/value_writer.h"

namespace weft::sema {

class TileArguments {
public:
    // `parameters`: names separated by spaces; a '=' behind one makes it optional, a '*' takes the
    // positional ones from there on.
    TileArguments(std::string name, std::string_view parameters, std::vector<Actual> given, Span span,
                  ir::Builder& builder);

    const std::string& name() const { return name_; }
    Span span() const { return span_; }
    bool has(const std::string& parameter) const { return at_.contains(parameter); }
    const Actual& operator[](const std::string& parameter) const { return *at_.at(parameter); }
    const std::vector<Actual>& rest() const { return rest_; }  // behind the '*'

    // ---- constants ----
    ir::Extents shape(const std::string& parameter = "shape") const;
    void check_count(const std::vector<std::int64_t>& shape) const;  // not too many elements
    std::int64_t integer(const std::string& parameter) const;
    std::optional<std::int64_t> axis() const;  // empty if there is none
    bool flag(const std::string& parameter, bool otherwise) const;
    std::string text(const std::string& parameter, const std::string& otherwise,
                     const std::vector<std::string>& choices) const;
    Type dtype(Type otherwise, const std::string& parameter = "dtype") const;
    // Reads `storage`, which changes no values: whether it is "shared".
    bool check_storage() const;

    // ---- values ----
    const Value& tile(const std::string& parameter) const;
    const Value& array(const std::string& parameter) const;
    const Value& function(const std::string& parameter) const;
    ir::Value* value(const std::string& parameter) const;
    ir::Value* number(const std::string& parameter, Type type) const;  // a literal adapts
    // One i32 for each dimension; zeros if it is left out.
    std::vector<ir::Value*> offset(std::size_t rank) const;

    [[noreturn]] void refuse(const std::string& parameter, const std::string& expected,
                             ErrorCategory category = ErrorCategory::type) const;
    // For extents and other numbers that do not fit.
    [[noreturn]] void refuse_value(const std::string& parameter, const std::string& expected) const {
        refuse(parameter, expected, ErrorCategory::value);
    }
    [[noreturn]] void refuse_all(const std::string& what, std::vector<Note> notes = {},
                                 ErrorCategory category = ErrorCategory::value) const;

private:
    std::string name_;
    std::vector<Actual> given_, rest_;
    Span span_;
    ir::Builder& builder_;
    std::map<std::string, const Actual*> at_;
};

// "(4, 8)".
std::string shape_text(const ir::Extents& shape);
ir::Extents row_major(const ir::Extents& shape);
// The constant integers of a tuple, or one integer; empty if it is none of these.
std::optional<ir::Extents> constant_extents(const Value& value);

}  // namespace weft::sema

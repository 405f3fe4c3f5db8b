// Assignment targets, parts of values, and arguments of calls.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/ir.h"
#include "sema/value.h"
#include "support/error.h"
#include "syntax/tree.h"

namespace weft::sema {

struct AssignmentTarget;

// One argument of a call as written.
struct Actual {
    Value value;
    Span span;
    std::string keyword;                             // "" for a positional one
    const syntax::Expression* expression = nullptr;  // the target of an inout parameter
    std::shared_ptr<const AssignmentTarget> place;   // of an argument that is passed by reference
};

// One step from a value to a part of it.
struct PartStep {
    enum class Kind {
        path,        // fixed components or a field: `path`
        dynamic,     // components at run time: `indices`
        several,     // a swizzle, a slice or a half of a transform: `components`, in order; always the last step
        several_at,  // a slice beside an index that is known at run time, m[i, 0:2]: `positions`; the last step too
    } kind = Kind::path;
    std::vector<std::int64_t> path;
    std::vector<ir::Value*> indices;
    std::vector<std::int64_t> components;            // numbered row by row
    std::vector<std::vector<ir::Value*>> positions;  // indices of each component
    Type whole;                                      // several, several_at: the type of the whole
    Type type;                                       // of the part

    bool is_slice() const {
        return (kind == Kind::several || kind == Kind::several_at) && (type.is_vector() || type.is_matrix());
    }
};

// The path of the component with this number, row by row.
std::vector<std::int64_t> component_path(Type aggregate, std::int64_t number);
std::vector<std::int64_t> positions_of_slice(std::optional<std::int64_t> start, std::optional<std::int64_t> stop,
                                             std::optional<std::int64_t> step, std::int64_t size, Span span);
bool has_slice(std::span<const syntax::ExpressionPtr> indices);

// The target of an assignment: a local or an element of an array, or a part of one of these.
struct AssignmentTarget {
    std::string name;                      // a local, or
    std::vector<std::int64_t> elements;    // an element of a list in a local, by its path,
    ir::Value* element = nullptr;          // and by an index that is known at run time; or
    std::shared_ptr<const TileView> tile;  // a view of the tile in the local `name`,
    ir::Value* tile_element = nullptr;     // or the element of this number; or
    ir::Value* array = nullptr;            // memory: array and one index per dimension
    std::vector<ir::Value*> indices;
    std::vector<PartStep> steps;
    std::optional<Value> value;  // or a value of which only parts can be assigned: a row of an indexedarray
    Type type;                   // of the part that is assigned
    Span span;
};

}  // namespace weft::sema

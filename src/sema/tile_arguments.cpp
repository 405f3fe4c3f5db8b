#include "sema/tile_arguments.h"

#include <algorithm>

#include "sema/expected_types.h"
#include "sema/messages.h"

namespace weft::sema {

namespace {

constexpr std::int64_t kMostTileElements = 1 << 22;

}  // namespace

std::string shape_text(const ir::Extents& shape) {
    std::string text;
    for (const std::int64_t extent : shape) text += (text.empty() ? "" : ", ") + std::to_string(extent);
    return "(" + text + (shape.size() == 1 ? ",)" : ")");
}

ir::Extents row_major(const ir::Extents& shape) {
    ir::Extents strides(shape.size());
    std::int64_t stride = 1;
    for (std::size_t i = shape.size(); i-- > 0;) {
        strides[i] = stride;
        stride *= shape[i];
    }
    return strides;
}

std::optional<ir::Extents> constant_extents(const Value& value) {
    ir::Extents extents;
    const std::vector<Value> entries = value.is_tuple() ? value.elements : std::vector<Value>{value};
    for (const Value& entry : entries) {
        if (!entry.is_constant_integer()) return std::nullopt;
        extents.push_back(entry.numbers[0].i);
    }
    return extents;
}

TileArguments::TileArguments(std::string name, std::string_view parameters, std::vector<Actual> given, Span span,
                             ir::Builder& builder)
    : name_(std::move(name)), given_(std::move(given)), span_(span), builder_(builder) {
    struct Parameter {
        std::string name;
        bool is_optional;
    };
    std::vector<Parameter> all;
    bool takes_rest = false;
    std::size_t before_rest = 0;
    while (!parameters.empty()) {
        const std::size_t end = std::min(parameters.find(' '), parameters.size());
        std::string word(parameters.substr(0, end));
        parameters.remove_prefix(std::min(end + 1, parameters.size()));
        if (word.starts_with('*')) {
            takes_rest = true;
            before_rest = all.size();
            continue;
        }
        const bool is_optional = word.ends_with('=');
        if (is_optional) word.pop_back();
        all.push_back({std::move(word), is_optional});
    }
    std::string signature;
    for (const Parameter& p : all)
        signature += (signature.empty() ? "" : ", ") + p.name + (p.is_optional ? "=..." : "");
    const Note shown = note("the function is wp." + name_ + "(" + signature + (takes_rest ? ", ...)" : ")"));
    std::size_t next = 0;
    for (const Actual& actual : given_) {
        if (actual.value.is_nothing()) fail(actual.span, "this call returns nothing, so it cannot be an argument");
        auto found = all.end();
        if (!actual.keyword.empty()) {
            found = std::find_if(all.begin(), all.end(), [&](const Parameter& p) { return p.name == actual.keyword; });
            if (found == all.end())
                fail(actual.span, "wp." + name_ + "() has no parameter '" + actual.keyword + "'", {shown});
        } else if (next < (takes_rest ? before_rest : all.size())) {
            found = all.begin() + static_cast<std::ptrdiff_t>(next++);
        } else if (takes_rest) {
            rest_.push_back(actual);
            continue;
        } else {
            fail(actual.span, "wp." + name_ + "() takes " + std::to_string(all.size()) + " arguments, got more",
                 {shown});
        }
        if (!at_.emplace(found->name, &actual).second)
            fail(actual.span, "argument '" + found->name + "' of wp." + name_ + "() is given twice", {shown});
    }
    for (const Parameter& p : all) {
        if (!p.is_optional && !at_.contains(p.name))
            fail(span_, "argument '" + p.name + "' of wp." + name_ + "() is missing", {shown});
        // None stands for the default.
        if (p.is_optional && at_.contains(p.name) && at_[p.name]->value.is_binding(Binding::Kind::none))
            at_.erase(p.name);
    }
}

void TileArguments::refuse(const std::string& parameter, const std::string& expected, ErrorCategory category) const {
    const Actual& actual = (*this)[parameter];
    fail(actual.span,
         "argument '" + parameter + "' of wp." + name_ + "() is " + describe(actual.value) + ", expected " + expected,
         {}, category);
}

void TileArguments::refuse_all(const std::string& what, std::vector<Note> notes, ErrorCategory category) const {
    fail(span_, "wp." + name_ + "(): " + what, std::move(notes), category);
}

ir::Extents TileArguments::shape(const std::string& parameter) const {
    const std::optional<ir::Extents> extents = constant_extents((*this)[parameter].value);
    const Span place = (*this)[parameter].span;
    if (!extents || extents->empty()) {
        fail(place,
             "Tile functions require shape to be a compile time constant: argument '" + parameter + "' of wp." + name_ +
                 "() is " + describe((*this)[parameter].value),
             {help("write integers, captured constants or wp.static(...)")}, ErrorCategory::value);
    }
    std::int64_t count = 1;
    for (const std::int64_t extent : *extents) {
        if (extent < 1)
            fail(place, "the shape " + shape_text(*extents) + " of wp." + name_ + "() has an extent below 1", {},
                 ErrorCategory::value);
        count = extent > kMostTileElements ? kMostTileElements + 1 : std::min(count * extent, kMostTileElements + 1);
    }
    if (count > kMostTileElements) {
        fail(place,
             "the shape " + shape_text(*extents) + " of wp." + name_ + "() has more than " +
                 std::to_string(kMostTileElements) + " elements",
             {help("load and store the data in smaller tiles")}, ErrorCategory::value);
    }
    return *extents;
}

void TileArguments::check_count(const std::vector<std::int64_t>& shape) const {
    double count = 1;
    for (const std::int64_t extent : shape) count *= static_cast<double>(extent);
    if (count > kMostTileElements) {
        refuse_all("a tile of shape " + shape_text(shape) + " has more than " + std::to_string(kMostTileElements) +
                   " elements");
    }
}

std::int64_t TileArguments::integer(const std::string& parameter) const {
    const Value& value = (*this)[parameter].value;
    if (!value.is_constant_integer()) refuse_value(parameter, "a constant integer, known at compile time");
    return value.numbers[0].i;
}

std::optional<std::int64_t> TileArguments::axis() const {
    return has("axis") ? std::optional(integer("axis")) : std::nullopt;
}

bool TileArguments::flag(const std::string& parameter, bool otherwise) const {
    if (!has(parameter)) return otherwise;
    const Value& value = (*this)[parameter].value;
    if (!value.is_constant_bool() && !value.is_constant_integer())
        refuse(parameter, "True or False, known at compile time");
    return value.numbers[0].i != 0;
}

std::string TileArguments::text(const std::string& parameter, const std::string& otherwise,
                                const std::vector<std::string>& choices) const {
    if (!has(parameter)) return otherwise;
    const Value& value = (*this)[parameter].value;
    std::string list;
    for (const std::string& choice : choices) list += (list.empty() ? "\"" : " or \"") + choice + "\"";
    if (!value.is_binding(Binding::Kind::string)) refuse(parameter, list);
    if (std::find(choices.begin(), choices.end(), value.binding->text) == choices.end())
        fail((*this)[parameter].span,
             "argument '" + parameter + "' of wp." + name_ + "() is " + describe(value) + ", expected " + list, {},
             ErrorCategory::value);
    return value.binding->text;
}

Type TileArguments::dtype(Type otherwise, const std::string& parameter) const {
    if (!has(parameter)) return otherwise;
    const Value& value = (*this)[parameter].value;
    if (!value.is_binding(Binding::Kind::type)) refuse(parameter, "a type");
    return value.binding->type;
}

bool TileArguments::check_storage() const { return text("storage", "register", {"register", "shared"}) == "shared"; }

const Value& TileArguments::tile(const std::string& parameter) const {
    const Value& value = (*this)[parameter].value;
    if (!value.type.is_tile()) refuse(parameter, "a tile");
    return value;
}

const Value& TileArguments::array(const std::string& parameter) const {
    const Value& value = (*this)[parameter].value;
    if (!type_of(value).is_array()) refuse(parameter, "an array");
    return value;
}

const Value& TileArguments::function(const std::string& parameter) const {
    const Value& value = (*this)[parameter].value;
    for (const Binding::Kind kind :
         {Binding::Kind::function, Binding::Kind::builtin, Binding::Kind::type, Binding::Kind::closure})
        if (value.is_binding(kind)) return value;
    refuse(parameter, "a @wp.func or a built-in function");
}

ir::Value* TileArguments::value(const std::string& parameter) const {
    const Actual& actual = (*this)[parameter];
    return ValueWriter(builder_).materialize(actual.value, actual.span);
}

ir::Value* TileArguments::number(const std::string& parameter, Type type) const {
    const Actual& actual = (*this)[parameter];
    const std::string what = "argument '" + parameter + "' of wp." + name_ + "()";
    const Value& given = actual.value;
    // A number of another type is converted.
    if (type.is_scalar() && type_of(given).is_scalar() && !adapt(given, type, actual.span) && !(type_of(given) == type))
        return builder_.cast(ValueWriter(builder_).materialize(given, actual.span), type.scalar());
    return ValueWriter(builder_).materialize(expect(given, type, actual.span, what), actual.span);
}

std::vector<ir::Value*> TileArguments::offset(std::size_t rank) const {
    if (!has("offset")) return std::vector<ir::Value*>(rank, builder_.integer(0));
    const Actual& actual = (*this)["offset"];
    const std::vector<Value> entries =
        actual.value.is_tuple() ? actual.value.elements : std::vector<Value>{actual.value};
    if (entries.size() != rank) {
        fail(actual.span,
             "argument 'offset' of wp." + name_ + "() has " + std::to_string(entries.size()) + " entries, expected " +
                 std::to_string(rank) + ", one for each dimension",
             {}, ErrorCategory::value);
    }
    std::vector<ir::Value*> offset;
    for (const Value& entry : entries) {
        ir::Value* at = ValueWriter(builder_).index(entry, actual.span);
        offset.push_back(at->type == i32_type() ? at : builder_.cast(at, Scalar::i32));
    }
    return offset;
}

}  // namespace weft::sema

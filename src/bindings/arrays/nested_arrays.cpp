#include "bindings/arrays/nested_arrays.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "bindings/arrays/array_object.h"
#include "bindings/structs/structs.h"
#include "ir/typing.h"
#include "support/error.h"

namespace weft::bindings {
namespace {

// An array field of a struct, by its offset in the struct.
struct Field {
    std::int64_t offset;
    Type type;
};

void find_fields(Type structure, std::int64_t offset, std::vector<Field>& fields) {
    for (const Type::Field& field : structure.fields()) {
        if (field.type.is_array()) fields.push_back({offset + field.offset, field.type});
        if (field.type.is_struct()) find_fields(field.type, offset + field.offset, fields);
    }
}

// Calls visit(offset) with the offset of each element from the first, in bytes.
template <class Visit>
void for_each_element(const runtime::Array& array, Visit&& visit) {
    const std::span<const std::int64_t> shape = array.shape(), strides = array.strides();
    const auto walk = [&](const auto& self, std::size_t axis, std::int64_t at) -> void {
        if (axis == shape.size()) return visit(at);
        for (std::int64_t i = 0; i < shape[axis]; ++i) self(self, axis + 1, at + i * strides[axis]);
    };
    walk(walk, 0, 0);
}

// Calls visit(ArrayView&, Type) for the array fields of all elements whose memory the buffer keeps alive; if it returns
// true, the changed view is written back.
template <class Visit>
void for_each_view(const runtime::Array& array, Visit&& visit) {
    if (!array.buffer || !ir::holds_array(array.dtype) || array.size() == 0) return;
    std::vector<Field> fields;
    find_fields(array.dtype, 0, fields);
    runtime::HostWrite elements(array, /*keeps=*/true);
    std::byte* const begin = runtime::host_data(elements.array());
    bool is_changed = false;
    for_each_element(elements.array(), [&](std::int64_t element) {
        for (const Field& field : fields) {
            ArrayView view;
            std::memcpy(&view, begin + element + field.offset, sizeof view);
            if (!view.data || !array.buffer->references.find(view.data)) continue;
            if (!visit(view, field.type)) continue;
            std::memcpy(begin + element + field.offset, &view, sizeof view);
            is_changed = true;
        }
    });
    if (is_changed) elements.finish();
}

// A key that is equal for views of the same elements by the same type.
std::string key_of(const ArrayView& view, Type type) {
    ArrayView shown = view;
    shown.grad = nullptr;
    return std::string(reinterpret_cast<const char*>(&shown), sizeof shown) + type.ir_name();
}

class Finder {
public:
    void look_in(const runtime::Array& array) {
        for_each_view(array, [&](const ArrayView& view, Type type) {
            if (!seen_.insert(key_of(view, type)).second) return false;
            const runtime::BufferPtr kept = array.buffer->references.find(view.data);
            if (!view.grad && (kept->marks & kGotGradientLater) && ir::is_smooth(type.element())) {
                throw UsageError("launch()",
                                 "a " + type.python_name() + " in the elements of an array of " +
                                     array.dtype.python_name() +
                                     " got its gradient after it was stored there, so the launch would not see it. "
                                     "help: store the struct again, or give arrays their gradients before",
                                 ErrorCategory::value);
            }
            found.push_back(array_from_view(view, type, array.buffer.get()));
            look_in(value_of(found.back().ptr()).array);
            return false;
        });
    }

    std::vector<nb::object> found;

private:
    std::unordered_set<std::string> seen_;
};

class Replacer {
public:
    void add(nb::handle original, nb::handle copy) {
        const runtime::Array& array = value_of(original.ptr()).array;
        copies_[key_of(array.view, Type::array(array.dtype, array.ndim))] = nb::borrow(copy);
    }

    nb::object replaced(nb::handle array) {
        nb::object copy = keep(array);
        const runtime::BufferPtr& buffer = value_of(copy.ptr()).array.buffer;
        for_each_view(value_of(copy.ptr()).array, [&](ArrayView& view, Type type) {
            const std::string key = key_of(view, type);
            auto found = copies_.find(key);
            if (ir::holds_array(type.element()) && made_.insert(key).second) {
                const nb::object inner =
                    found != copies_.end() ? found->second : array_from_view(view, type, buffer.get());
                found = copies_.insert_or_assign(key, replaced(inner)).first;
            }
            if (found == copies_.end()) return false;
            PyArray& to = value_of(found->second.ptr());
            view.data = to.array.view.data;
            if (to.requires_grad) view.grad = escaping_view(to).grad;
            keep_array(to, *buffer);
            return true;
        });
        return copy;
    }

private:
    std::unordered_map<std::string, nb::object> copies_;
    std::unordered_set<std::string> made_;  // the copies that are done
};

// Calls visit(const runtime::Array&) for an array, or for the arrays in a struct.
template <class Visit>
void for_each_array(nb::handle value, Visit&& visit) {
    if (PyArray* array = array_pointer(value)) visit(array->array);
    for (PyArray* array : arrays_in(value)) visit(array->array);
}

}  // namespace

std::vector<nb::object> nested_arrays(nb::handle value) {
    Finder finder;
    for_each_array(value, [&](const runtime::Array& array) { finder.look_in(array); });
    return std::move(finder.found);
}

void count_nested_writes(nb::handle value) {
    std::set<runtime::Buffer*> counted;
    const auto count = [&](const auto& self, const runtime::Buffer& holder) -> void {
        for (const runtime::BufferPtr& kept : holder.references.all()) {
            if (!counted.insert(kept.get()).second) continue;
            runtime::count_write(kept);
            self(self, *kept);
        }
    };
    for_each_array(value, [&](const runtime::Array& array) {
        if (array.buffer && ir::holds_array(array.dtype)) count(count, *array.buffer);
    });
}

nb::object with_nested_gradients(nb::handle array, nb::handle gradient) {
    nb::object result = keep(array);
    const runtime::Array& copy = value_of(result.ptr()).array;
    const runtime::Array given = runtime::on_host(value_of(gradient.ptr()).array);
    if (copy.size() == 0) return result;
    std::vector<Field> fields;
    find_fields(copy.dtype, 0, fields);
    std::vector<std::int64_t> places;
    for_each_element(given, [&](std::int64_t place) { places.push_back(place); });
    runtime::HostWrite elements(copy, /*keeps=*/true);
    std::byte* const begin = runtime::host_data(elements.array());
    auto place = places.begin();
    for_each_element(elements.array(), [&](std::int64_t element) {
        const std::byte* const from = runtime::host_data(given) + *place++;
        for (const Field& field : fields) {
            ArrayView view, of_view;
            std::memcpy(&view, begin + element + field.offset, sizeof view);
            std::memcpy(&of_view, from + field.offset, sizeof of_view);
            if (!view.data || !of_view.data) continue;
            const bool has_arrays = ir::holds_array(field.type.element());
            const auto ndim = static_cast<std::size_t>(field.type.ndim());
            if (has_arrays || !std::equal(view.shape, view.shape + ndim, of_view.shape) ||
                !std::equal(view.strides, view.strides + ndim, of_view.strides))
                throw UsageError("launch()",
                                 "the gradient of a " + field.type.python_name() + " in the elements of an array of " +
                                     copy.dtype.python_name() +
                                     (has_arrays ? " cannot be given, because its elements hold arrays themselves. "
                                                   "help: arrays made with requires_grad=True, whose gradients are "
                                                   "found by themselves"
                                                 : " has another shape or other strides than the array. help: "
                                                   "wp.zeros_like(array)"),
                                 ErrorCategory::value);
            view.grad = of_view.data;
            std::memcpy(begin + element + field.offset, &view, sizeof view);
        }
    });
    elements.finish();
    copy.buffer->references.add_all(value_of(array.ptr()).array.buffer->references, *copy.buffer);
    copy.buffer->references.add_all(value_of(gradient.ptr()).array.buffer->references, *copy.buffer);
    return result;
}

nb::object with_nested(nb::handle array, nb::list originals, nb::list copies) {
    Replacer replacer;
    for (std::size_t i = 0; i < nb::len(originals); ++i) replacer.add(originals[i], copies[i]);
    return replacer.replaced(array);
}

}  // namespace weft::bindings

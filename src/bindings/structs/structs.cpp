#include "bindings/structs/structs.h"

#include <algorithm>
#include <cstring>

#include "bindings/foreign/foreign.h"
#include "bindings/values/types.h"
#include "bindings/values/values.h"
#include "runtime/memory_pool.h"
#include "support/error.h"
#include "types/objects.h"
#include "types/struct_key.h"

namespace weft::bindings {
namespace {

std::size_t size_of(Type type) { return static_cast<std::size_t>(type.size_bytes()); }

void add_slots(Type type, std::int64_t offset, std::vector<StructValue::Slot>& slots) {
    for (const Type::Field& field : type.fields()) {
        if (field.type.is_array()) {
            slots.push_back({offset + field.offset, field.type, nb::object()});
        } else if (field.type.is_struct()) {
            add_slots(field.type, offset + field.offset, slots);
        }
    }
}

const Type::Field& field_at(const StructValue& value, std::size_t index) { return value.type().fields()[index]; }

std::string field_name(const StructValue& value, std::size_t index) {
    return value.type().struct_name() + "." + field_at(value, index).name;
}

[[noreturn]] void throw_misfit(const StructValue& self, std::size_t index, const std::string& found,
                               ErrorCategory category = ErrorCategory::type) {
    throw UsageError(field_name(self, index), "expected " + field_at(self, index).type.python_name() + ", got " + found,
                     category);
}

[[noreturn]] void throw_other_type(const StructValue& self, std::size_t index, Type found) {
    const std::string again = redefinition_text(found, field_at(self, index).type);
    throw_misfit(self, index, found.python_name() + (again.empty() ? "" : ": " + again));
}

// Calls visit(offset, type) for the number fields, including those of inner structs.
template <class Visit>
void for_each_number(Type type, std::int64_t offset, Visit&& visit) {
    for (const Type::Field& field : type.fields()) {
        if (field.type.is_struct()) for_each_number(field.type, offset + field.offset, visit);
        if (field.type.is_scalar()) visit(offset + field.offset, field.type);
    }
}

// A number of Python or NumPy: it is immutable.
bool is_plain_number(nb::handle value) {
    if (PyLong_Check(value.ptr()) || PyFloat_Check(value.ptr())) return true;
    const nb::handle its_class(reinterpret_cast<PyObject*>(Py_TYPE(value.ptr())));
    return !value_pointer(value) && dtype_from_python(its_class).has_value();
}

nb::object typed_number(Type type, const std::byte* data) {
    nb::object made = new_value(type);
    std::memcpy(value_pointer(made)->data(), data, size_of(type));
    return made;
}

StructValue::Slot& slot_at(StructValue& value, std::int64_t field_offset) {
    const std::int64_t offset = value.offset() + field_offset;
    for (StructValue::Slot& slot : value.slots()) {
        if (slot.offset == offset) return slot;
    }
    throw InternalError("a struct has no place for one of its arrays");
}

// The array to keep for a value assigned to an array field: itself, or one over the memory of a NumPy array.
nb::object array_for(const StructValue& self, std::size_t index, nb::handle value) {
    const Type type = field_at(self, index).type;
    if (PyArray* given = array_pointer(value)) {
        if (given->pending) throw_misfit(self, index, pending_text(*given));
        if (given->is_annotation) throw_misfit(self, index, "an annotation (wp.array without data)");
        const Type found = Type::array(given->array.dtype, given->array.ndim);
        if (found != type) throw_other_type(self, index, found);
        return nb::borrow(value);
    }
    const std::string name = field_name(self, index);
    auto foreign = foreign_array(value, type.element(), type.ndim(), {name, "the value"}, /*outlives=*/true);
    if (!foreign) throw_misfit(self, index, describe(value));
    return wrap_array(std::move(*foreign));
}

void set_array(StructValue& self, std::int64_t field_offset, nb::object array) {
    ArrayView view;
    if (PyArray* given = array.is_valid() ? array_pointer(array) : nullptr) view = escaping_view(*given);
    std::memcpy(self.data() + field_offset, &view, sizeof view);
    slot_at(self, field_offset).array = std::move(array);
}

// A runtime array over memory that a struct points to.
runtime::Array array_at(const ArrayView& view, Type type, void* data, const runtime::Buffer* memory) {
    runtime::Array array;
    array.dtype = type.element();
    array.ndim = type.ndim();
    array.view = view;
    array.view.data = data;
    array.view.grad = nullptr;
    array.device = memory ? memory->device : &runtime::host_device();
    if (memory && data) array.buffer = memory->references.find(data);
    if (!array.buffer) {
        array.buffer = std::make_shared<runtime::Buffer>();
        array.buffer->device = array.device;
        array.buffer->release = [] {};  // not owned
        auto [low, high] = array.extent();
        array.buffer->data = const_cast<std::byte*>(low);
        array.buffer->size_bytes = high - low;
    }
    return array;
}

}  // namespace

nb::object array_from_view(const ArrayView& view, Type type, const runtime::Buffer* memory) {
    if (!view.data && std::all_of(view.shape, view.shape + kMaxDims, [](std::int64_t extent) { return extent == 0; })) {
        return {};
    }
    nb::object result = nb::steal(make_array(array_at(view, type, view.data, memory)));
    if (view.grad) {
        nb::object gradient = nb::steal(make_array(array_at(view, type, view.grad, memory)));
        set_gradient(value_of(result.ptr()), gradient.ptr(), "array.grad");
    }
    return result;
}

// ---- StructValue ----

StructValue::StructValue(Type type) : type_(type), data_(new std::byte[size_of(type)]) {
    std::memset(data_, 0, size_of(type));
    add_slots(type, 0, slots_);
}

StructValue::StructValue(Type type, std::byte* data, nb::handle root) : type_(type), data_(data), root_(root.ptr()) {
    Py_INCREF(root_);
}

StructValue::~StructValue() {
    if (root_) {
        Py_DECREF(root_);
    } else {
        delete[] data_;
    }
}

StructValue& StructValue::root_value() { return root_ ? *nb::inst_ptr<StructValue>(root_) : *this; }

std::int64_t StructValue::offset() { return data_ - root_value().data_; }

std::span<StructValue::Slot> StructValue::slots() {
    std::vector<Slot>& all = root_value().slots_;
    const std::int64_t begin = offset(), end = begin + type_.size_bytes();
    auto first = std::find_if(all.begin(), all.end(), [&](const Slot& slot) { return slot.offset >= begin; });
    auto last = std::find_if(first, all.end(), [&](const Slot& slot) { return slot.offset >= end; });
    return {first, last};
}

void StructValue::pack(void* to) {
    // An array may have got a gradient since it was assigned.
    for (const Slot& slot : slots()) {
        if (!slot.array.is_valid()) continue;
        std::memcpy(data_ + (slot.offset - offset()), &escaping_view(*array_pointer(slot.array)), sizeof(ArrayView));
    }
    std::memcpy(to, data_, size_of(type_));
}

nb::object StructValue::number_at(std::int64_t offset, Type scalar) {
    StructValue& root = root_value();
    const auto found = root.numbers_.find(this->offset() + offset);
    if (found != root.numbers_.end()) return found->second;
    return root.is_from_memory_ ? value_to_python(scalar, data_ + offset) : typed_number(scalar, data_ + offset);
}

void StructValue::keep_number(std::int64_t offset, nb::object number) {
    root_value().numbers_[this->offset() + offset] = std::move(number);
}

nb::object StructValue::texture_at(std::int64_t offset) {
    const auto found = root_value().textures_.find(this->offset() + offset);
    if (found == root_value().textures_.end()) return {};
    const StructValue& texture = *struct_pointer(found->second);
    const bool is_there = std::memcmp(texture.data(), data_ + offset, size_of(texture.type())) == 0;
    return is_there ? found->second : nb::object();
}

void StructValue::keep_texture(std::int64_t offset, nb::object texture) {
    root_value().textures_[this->offset() + offset] = std::move(texture);
}

void StructValue::take(StructValue& other) {
    // All is read before anything is written: the two may overlap.
    std::vector<std::byte> bytes(size_of(type_));
    other.pack(bytes.data());
    std::vector<nb::object> arrays, numbers;
    for (const Slot& slot : other.slots()) arrays.push_back(slot.array);
    for_each_number(type_, 0, [&](std::int64_t at, Type scalar) { numbers.push_back(other.number_at(at, scalar)); });
    std::vector<std::pair<std::int64_t, nb::object>> textures;
    for (const auto& [at, texture] : other.root_value().textures_)
        if (at >= other.offset() && at < other.offset() + type_.size_bytes())
            textures.emplace_back(at - other.offset(), texture);

    std::memcpy(data_, bytes.data(), bytes.size());
    std::size_t next = 0;
    for (Slot& slot : slots()) slot.array = std::move(arrays[next++]);
    next = 0;
    for_each_number(type_, 0, [&](std::int64_t at, Type) { keep_number(at, std::move(numbers[next++])); });
    for (auto& [at, texture] : textures) keep_texture(at, std::move(texture));
}

int StructValue::traverse(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    if (!nb::inst_ready(self)) return 0;
    auto* value = nb::inst_ptr<StructValue>(self);
    Py_VISIT(value->root_);
    for (const Slot& slot : value->slots_) Py_VISIT(slot.array.ptr());
    for (const auto& [offset, number] : value->numbers_) Py_VISIT(number.ptr());
    for (const auto& [offset, texture] : value->textures_) Py_VISIT(texture.ptr());
    return 0;
}

// The bytes go with the arrays, for objects that still view this struct.
int StructValue::clear(PyObject* self) {
    if (!nb::inst_ready(self)) return 0;
    auto* value = nb::inst_ptr<StructValue>(self);
    for (Slot& slot : value->slots_) {
        std::memset(value->data_ + slot.offset, 0, sizeof(ArrayView));
        slot.array.reset();
    }
    value->numbers_.clear();
    value->textures_.clear();
    return 0;
}

StructValue* struct_pointer(nb::handle object) {
    if (!nb::isinstance<StructValue>(object) || !nb::inst_ready(object)) return nullptr;
    return nb::inst_ptr<StructValue>(object);
}

std::optional<Type> struct_type_of_class(PyTypeObject* python_class) {
    for (PyTypeObject* c = python_class; c; c = c->tp_base) {
        auto type = dtype_from_python(reinterpret_cast<PyObject*>(c));
        if (type && type->is_struct()) return type;
    }
    return std::nullopt;
}

nb::object new_struct(Type type) {
    nb::object made = nb::inst_alloc(dtype_to_python(type));
    new (nb::inst_ptr<StructValue>(made)) StructValue(type);
    nb::inst_mark_ready(made);
    return made;
}

// ---- fields ----

nb::object get_field(nb::handle self, std::size_t index) {
    StructValue& value = *struct_pointer(self);
    const Type::Field& field = field_at(value, index);
    std::byte* data = value.data() + field.offset;
    if (field.type.is_scalar()) return value.number_at(field.offset, field.type);
    if (field.type.is_array()) {
        const nb::object& array = slot_at(value, field.offset).array;
        return array.is_valid() ? array : nb::none();
    }
    if (texture_dims(field.type) != 0)
        if (nb::object texture = value.texture_at(field.offset); texture.is_valid()) return texture;
    const nb::handle root = value.root().is_valid() ? value.root() : self;
    if (!field.type.is_struct()) return new_view(field.type, data, root);
    nb::object made = nb::inst_alloc(dtype_to_python(field.type));
    new (nb::inst_ptr<StructValue>(made)) StructValue(field.type, data, root);
    nb::inst_mark_ready(made);
    return made;
}

void set_field(nb::handle self, std::size_t index, nb::handle value) {
    StructValue& to = *struct_pointer(self);
    const Type::Field& field = field_at(to, index);
    std::byte* data = to.data() + field.offset;
    if (field.type.is_array()) {
        set_array(to, field.offset, value.is_none() ? nb::object() : array_for(to, index, value));
        return;
    }
    // None means a call of the type without arguments: zero, or the identity for a transform. For a texture: none.
    const bool is_texture = texture_dims(field.type) != 0;
    const nb::object given = !value.is_none() ? nb::borrow(value)
                             : is_texture     ? new_struct(field.type)
                                              : dtype_to_python(field.type)();
    if (field.type.is_struct()) {
        StructValue* from = struct_pointer(given);
        if (from && from->type() != field.type) throw_other_type(to, index, from->type());
        if (!from) throw_misfit(to, index, describe(value));
        StructValue(field.type, data, to.root().is_valid() ? to.root() : self).take(*from);
        if (is_texture) to.keep_texture(field.offset, given);
        return;
    }
    if (!write_value(given, field.type, data))
        throw_misfit(to, index, describe(value), misfit_category(value, field.type));
    if (!field.type.is_scalar()) return;
    to.keep_number(field.offset, is_plain_number(given) ? given : typed_number(field.type, data));
}

// ---- values ----

std::vector<PyArray*> arrays_in(nb::handle value) {
    std::vector<PyArray*> result;
    if (StructValue* found = struct_pointer(value)) {
        for (const StructValue::Slot& slot : found->slots()) {
            if (slot.array.is_valid()) result.push_back(array_pointer(slot.array));
        }
    }
    return result;
}

namespace {

void name_arrays(Type type, std::int64_t offset, const std::string& prefix, std::span<StructValue::Slot> slots,
                 std::vector<NamedArray>& result) {
    for (const Type::Field& field : type.fields()) {
        const std::string name = prefix + "." + field.name;
        if (field.type.is_struct()) {
            name_arrays(field.type, offset + field.offset, name, slots, result);
        } else if (field.type.is_array()) {
            for (const StructValue::Slot& slot : slots)
                if (slot.offset == offset + field.offset && slot.array.is_valid())
                    result.push_back({name, array_pointer(slot.array)});
        }
    }
}

}  // namespace

std::vector<NamedArray> named_arrays_in(nb::handle value) {
    std::vector<NamedArray> result;
    if (StructValue* found = struct_pointer(value))
        name_arrays(found->type(), found->offset(), "", found->slots(), result);
    return result;
}

std::vector<nb::object> array_objects_in(nb::handle value) {
    std::vector<nb::object> result;
    if (StructValue* found = struct_pointer(value)) {
        for (const StructValue::Slot& slot : found->slots()) {
            if (slot.array.is_valid()) result.push_back(slot.array);
        }
    }
    return result;
}

bool write_struct(nb::handle value, Type type, void* to) {
    if (value.is_none() && texture_dims(type) != 0) {
        std::memset(to, 0, size_of(type));
        return true;
    }
    StructValue* given = struct_pointer(value);
    if (!given || given->type() != type) return false;
    given->pack(to);
    return true;
}

nb::object struct_to_python(Type type, const void* from, const runtime::Buffer* memory) {
    nb::object made = new_struct(type);
    StructValue& value = *struct_pointer(made);
    std::memcpy(value.data(), from, size_of(type));
    value.set_from_memory();
    for (StructValue::Slot& slot : value.slots()) {
        ArrayView view;
        std::memcpy(&view, value.data() + slot.offset, sizeof view);
        slot.array = array_from_view(view, slot.type, memory);
    }
    return made;
}

void require_arrays_on(runtime::Device& device, nb::handle value, const char* api) {
    for (const PyArray* array : arrays_in(value)) {
        const runtime::Array& held = array->array;
        if (held.device == &device || runtime::launches_take(device, held)) continue;
        throw UsageError(api, "the struct holds an array on '" + held.device->alias + "', and is stored on '" +
                                  device.alias + "', where kernels could not reach it. help: store struct.to('" +
                                  device.alias + "')");
    }
}

void keep_array(const PyArray& value, runtime::Buffer& holder, std::int64_t offset) {
    constexpr auto kUnknownOffset = runtime::References::kUnknownOffset;
    const auto at = [&](std::size_t member) {
        return offset == kUnknownOffset ? kUnknownOffset : offset + static_cast<std::int64_t>(member);
    };
    holder.references.add(value.array.buffer, holder, at(offsetof(ArrayView, data)));
    holder.references.add_extent(value.array.longest_extent(), holder);
    if (value.requires_grad)
        holder.references.add(gradient_of(value).buffer, holder, at(offsetof(ArrayView, grad)));
    else if (value.array.buffer)
        value.array.buffer->marks |= kKeptWithoutGradient;
}

void keep_arrays(nb::handle value, runtime::Buffer& holder, std::int64_t offset) {
    constexpr auto kUnknownOffset = runtime::References::kUnknownOffset;
    StructValue* const given = struct_pointer(value);
    if (!given) return;
    if (offset != kUnknownOffset) holder.references.forget(offset, offset + given->type().size_bytes(), holder);
    for (const StructValue::Slot& slot : given->slots()) {
        if (!slot.array.is_valid()) continue;
        keep_array(*array_pointer(slot.array), holder,
                   offset == kUnknownOffset ? kUnknownOffset : offset + slot.offset - given->offset());
    }
}

}  // namespace weft::bindings

// Instances of the classes that @wp.struct makes: the packed bytes of one struct, as in the memory of arrays and
// arguments.
//
//   structs.cpp        the instance: fields, construction, text, arrays
//   struct_class.cpp   the class: fields from annotations, its properties
//   struct_numpy.cpp   structured NumPy arrays
//
// A number field keeps the assigned object (`s.n = 42` reads as the int 42). Its default is a typed scalar, and in a
// struct that was read from memory it is a Python number. A vector, matrix or struct field reads as a view that writes
// through (`s.velocity.x = 1.0`). An array field keeps the Python array that was assigned; the bytes hold its
// ArrayView.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bindings/values/array_value.h"
#include "runtime/array.h"
#include "types/type.h"

namespace weft::bindings {

namespace nb = nanobind;

class StructValue {
public:
    // An array field, of the struct itself or of one inside it.
    struct Slot {
        std::int64_t offset;  // from the start of the root
        Type type;
        nb::object array;  // null if none is assigned
    };

    explicit StructValue(Type type);                           // zero
    StructValue(Type type, std::byte* data, nb::handle root);  // a part of `root`, another struct instance
    ~StructValue();
    StructValue(const StructValue&) = delete;
    StructValue& operator=(const StructValue&) = delete;

    Type type() const { return type_; }
    std::byte* data() const { return data_; }
    nb::handle root() const { return root_; }  // null for a root
    // The array fields of this struct: those of its root that lie in its bytes.
    std::span<Slot> slots();
    std::int64_t offset();  // of the first byte in the root
    // Writes the bytes, with the present views of the arrays.
    void pack(void* to);

    // The number in a field of type `scalar`, by its offset in this struct: the assigned object, if there is one.
    nb::object number_at(std::int64_t offset, Type scalar);
    void keep_number(std::int64_t offset, nb::object number);
    // The texture in the field at this offset: the assigned object, while its bytes are there; else null.
    nb::object texture_at(std::int64_t offset);
    void keep_texture(std::int64_t offset, nb::object texture);
    // Copies all of another struct of the same type; each may be a part of the other.
    void take(StructValue& other);
    // The bytes come from memory: numbers read as Python's until others are assigned.
    void set_from_memory() { is_from_memory_ = true; }

    static int traverse(PyObject* self, visitproc visit, void* arg);
    static int clear(PyObject* self);

private:
    StructValue& root_value();

    Type type_;
    std::byte* data_;
    PyObject* root_ = nullptr;
    std::vector<Slot> slots_;                      // of a root, by offset
    std::map<std::int64_t, nb::object> numbers_;   // of a root, by offset: the assigned objects
    std::map<std::int64_t, nb::object> textures_;  // of a root, by offset: the assigned objects
    bool is_from_memory_ = false;                  // of a root
};

// Null if `object` is no struct instance.
StructValue* struct_pointer(nb::handle object);
// The struct type of a class that @wp.struct made, or of one derived from it; empty for others.
std::optional<Type> struct_type_of_class(PyTypeObject* python_class);
nb::object new_struct(Type type);

// The arrays in the fields of a struct instance; none for other values.
std::vector<PyArray*> arrays_in(nb::handle value);
std::vector<nb::object> array_objects_in(nb::handle value);
// The same with the path to each, ".links.parent".
struct NamedArray {
    std::string name;
    PyArray* array;
};
std::vector<NamedArray> named_arrays_in(nb::handle value);
// The array of an ArrayView in memory of `memory`, with its gradient. Null for a view of nothing.
nb::object array_from_view(const ArrayView& view, Type type, const runtime::Buffer* memory);
// write_value for structs: accepts only an instance of exactly this type.
bool write_struct(nb::handle value, Type type, void* to);
// An instance with these bytes. Its array fields share the memory of the arrays, which `memory`, the buffer of the
// bytes, keeps alive. Without `memory` they are valid as long as other owners keep the arrays.
nb::object struct_to_python(Type type, const void* from, const runtime::Buffer* memory);
// To be called after `value`, an array or a struct, was written to memory of `holder`: its arrays live as long as the
// holder. `offset` is that of the write in the holder, if it is a single one.
void keep_array(const PyArray& value, runtime::Buffer& holder,
                std::int64_t offset = runtime::References::kUnknownOffset);
// Throws unless a device has the arrays of a struct that is about to be stored in its memory.
void require_arrays_on(runtime::Device& device, nb::handle value, const char* api);
void keep_arrays(nb::handle value, runtime::Buffer& holder, std::int64_t offset = runtime::References::kUnknownOffset);

nb::object get_field(nb::handle self, std::size_t index);
void set_field(nb::handle self, std::size_t index, nb::handle value);

// ---- structured NumPy arrays ----

// A view whose dtype has the names and offsets of the fields; an array field is a record of its address and layout.
nb::object struct_numpy_view(const runtime::Array& array, nb::handle keep_alive, const char* api);
// Field by field and by name, with NumPy's casting. Throws if the names differ, and for structs with arrays.
void assign_structured(nb::handle target, nb::handle source, Type type, const char* api);
// An array of structs from a structured ndarray: a view if `copy` is false and the layouts are equal.
runtime::Array from_structured(nb::handle source, Type type, const std::optional<runtime::Shape>& shape, bool copy,
                               runtime::Device& device, const char* api);

void bind_structs(nb::module_& m);  // struct_class.cpp

}  // namespace weft::bindings

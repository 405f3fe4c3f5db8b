// make_struct: the Python class of a struct. python/warp/_kernels/structs.py finds the fields; here they become a type,
// and the class gets a property for each.
#include <nanobind/stl/string.h>

#include <set>

#include "bindings/python/fastcall.h"
#include "bindings/structs/structs.h"
#include "bindings/values/patterns.h"
#include "bindings/values/types.h"
#include "bindings/values/values.h"
#include "support/error.h"
#include "types/objects.h"
#include "types/struct_key.h"

namespace weft::bindings {
namespace {

// The components of a field's default, converted as by an assignment to the field.
std::vector<Number> read_default(const std::string& place, Type type, nb::handle value) {
    const std::string given = place + " has the default " + nb::repr(value).c_str();
    if (type.is_array() && value.is_none()) return {};
    if (type.is_array() || type.is_struct()) {
        throw UsageError("struct()",
                         given + (type.is_array() ? ": an array can have None only"
                                                  : ": a struct starts with the defaults of its own fields"),
                         ErrorCategory::type);
    }
    std::vector<std::byte> bytes(static_cast<std::size_t>(type.size_bytes()));
    if (!write_value(value, type, bytes.data()))
        throw UsageError("struct()", given + ", expected " + type.python_name(), ErrorCategory::type);
    std::vector<Number> numbers;
    const auto step = static_cast<std::size_t>(type.scalar_type().size_bytes());
    for (std::size_t at = 0; at < bytes.size(); at += step)
        numbers.push_back(read_scalar(type.scalar(), bytes.data() + at));
    return numbers;
}

// Writes the results of read_default(), and the defaults of inner structs, to memory that is zero.
void write_defaults(Type type, std::byte* to) {
    for (const Type::Field& field : type.fields()) {
        std::byte* at = to + field.offset;
        if (field.type.is_struct()) write_defaults(field.type, at);
        for (const Number number : field.default_value) {
            write_scalar(field.type.scalar(), number, at);
            at += field.type.scalar_type().size_bytes();
        }
    }
}

Type::Field read_field(const std::string& struct_name, nb::handle name, nb::handle annotation, nb::dict defaults) {
    Type::Field field;
    field.name = nb::cast<std::string>(name);
    const std::string place = "field '" + field.name + "' of " + struct_name;
    std::optional<Type> type = annotation_from_python(annotation);
    if (!type) {
        throw UsageError("struct()",
                         place + " is annotated with " + describe(annotation) +
                             ", which is no type of a kernel's values: expected float, int, bool, "
                             "wp.float64, wp.vec3, wp.array[float], another struct and the like",
                         ErrorCategory::type);
    }
    if (type->is_array() && type->element().is_none()) {
        throw UsageError("struct()",
                         place + " is an array of any type: expected one element type. help: " + field.name +
                             ": wp.array(dtype=float)",
                         ErrorCategory::type);
    }
    field.type = *type;
    if (defaults.contains(name)) field.default_value = read_default(place, *type, defaults[name]);
    return field;
}

// A property may be called on any object, or on an instance of __new__ without __init__: both are errors here.
StructValue& instance(nb::handle self, const std::string& member) {
    if (StructValue* value = struct_pointer(self)) return *value;
    throw UsageError(member, "expected an instance of a struct, got " + describe(self), ErrorCategory::type);
}

nb::object make_property(const Type::Field& field, std::size_t index) {
    nb::object getter = nb::cpp_function([field, index](nb::handle self) {
        instance(self, field.name);
        return get_field(self, index);
    });
    nb::object setter = nb::cpp_function(
        [field, index](nb::handle self, nb::handle value) {
            instance(self, field.name);
            set_field(self, index, value);
        },
        nb::arg("self"), nb::arg("value").none());
    return nb::borrow(reinterpret_cast<PyObject*>(&PyProperty_Type))(getter, setter, nb::none(),
                                                                     nb::str(field.type.python_name().c_str()));
}

std::vector<std::string> field_names(Type type) {
    std::vector<std::string> names;
    for (const Type::Field& field : type.fields()) names.push_back(field.name);
    return names;
}

// Python's own message for a name that is no field does not list the fields.
int set_attribute(PyObject* self, PyObject* name, PyObject* value) {
    if (PyObject_GenericSetAttr(self, name, value) == 0) return 0;
    StructValue* found = struct_pointer(self);
    if (!found || !PyErr_ExceptionMatches(PyExc_AttributeError)) return -1;
    const std::string wanted = nb::str(nb::handle(name)).c_str();
    if (!value || found->type().field_index(wanted)) return -1;
    PyErr_Clear();
    return guarded(
        [&]() -> int {
            throw UsageError(found->type().struct_name(),
                             "there is no field '" + wanted + "'; expected " + join_or(field_names(found->type())),
                             ErrorCategory::attribute);
        },
        -1);
}

// `type`, with a property for each field that `members` does not have.
nb::object make_class(Type type, const char* module, const char* qualname, nb::dict members, nb::tuple bases) {
    for (std::size_t i = 0; i < type.fields().size(); ++i)
        members[type.fields()[i].name.c_str()] = make_property(type.fields()[i], i);
    members["__slots__"] = nb::tuple();
    members["__module__"] = module;
    members["__qualname__"] = qualname;
    nb::object made = nb::borrow(reinterpret_cast<PyObject*>(&PyType_Type))(
        nb::str(type.struct_name().c_str()), nb::len(bases) ? bases : nb::make_tuple(nb::type<StructValue>()), members);
    // Not in StructValue itself: object.__setattr__(), which fills frozen dataclasses, refuses classes derived from one
    // with a slot of its own.
    auto* const python_class = reinterpret_cast<PyTypeObject*>(made.ptr());
    if (python_class->tp_setattro == &PyObject_GenericSetAttr) python_class->tp_setattro = &set_attribute;
    register_dtype(made, type);
    return made;
}

nb::object make_struct(const std::string& name, const std::string& module, const std::string& qualname,
                       nb::list declared, nb::dict members, nb::dict defaults, nb::tuple bases,
                       const std::string& rules) {
    std::vector<Type::Field> fields;
    for (nb::handle item : declared) fields.push_back(read_field(name, item[0], item[1], defaults));
    std::string key = struct_key(module, qualname, fields, rules);
    const Type type = Type::structure(name, std::move(key), std::move(fields));
    return make_class(type, module.c_str(), qualname.c_str(), std::move(members), std::move(bases));
}

void construct(nb::pointer_and_handle<StructValue> self, nb::args arguments, nb::kwargs keywords) {
    const std::optional<Type> type = struct_type_of_class(Py_TYPE(self.h.ptr()));
    if (!type) throw UsageError("struct()", "structs are made with @wp.struct on a class", ErrorCategory::type);
    const std::string api = type->struct_name() + "()";
    const auto& fields = type->fields();
    if (arguments.size() > fields.size()) {
        throw UsageError(
            api,
            "got " + std::to_string(arguments.size()) + " arguments for " + std::to_string(fields.size()) + " fields",
            ErrorCategory::type);
    }
    new (self.p) StructValue(*type);
    nb::inst_mark_ready(self.h);
    write_defaults(*type, self.p->data());
    for (std::size_t i = 0; i < arguments.size(); ++i) set_field(self.h, i, arguments[i]);
    for (auto [key, value] : keywords) {
        const auto name = nb::cast<std::string>(key);
        const std::optional<int> index = type->field_index(name);
        if (!index) {
            throw UsageError(api, "there is no field '" + name + "'; expected " + join_or(field_names(*type)),
                             ErrorCategory::type);
        }
        if (static_cast<std::size_t>(*index) < arguments.size()) {
            throw UsageError(api, "field '" + name + "' is given twice", ErrorCategory::type);
        }
        set_field(self.h, static_cast<std::size_t>(*index), value);
    }
}

std::string repr_of(nb::handle self) {
    StructValue& value = instance(self, "repr()");
    std::string text = value.type().struct_name() + "(";
    for (std::size_t i = 0; i < value.type().fields().size(); ++i) {
        const Type::Field& field = value.type().fields()[i];
        nb::object shown = get_field(self, i);
        text += (i ? ", " : "") + field.name + "=";
        if (const PyArray* array = array_pointer(shown)) {
            text += "<" + field.type.python_name() + " of shape " + runtime::shape_text(array->array.shape()) + ">";
        } else {
            text += nb::repr(shown).c_str();
        }
    }
    return text + ")";
}

nb::object copy_of(nb::handle self) {
    StructValue& value = instance(self, "copy()");
    nb::object made = new_struct(value.type());
    for (std::size_t i = 0; i < value.type().fields().size(); ++i) set_field(made, i, get_field(self, i));
    return made;
}

// Arrays are cloned, each once for all fields that share it: `memo` is the table of copy.deepcopy().
nb::object deep_copy_of(nb::handle self, nb::dict memo) {
    StructValue& value = instance(self, "deepcopy()");
    nb::object made = new_struct(value.type());
    for (std::size_t i = 0; i < value.type().fields().size(); ++i) {
        nb::object field = get_field(self, i);
        if (field.is_none()) continue;
        if (array_pointer(field)) {
            nb::object key = nb::steal(PyLong_FromVoidPtr(field.ptr()));
            if (!memo.contains(key)) memo[key] = nb::module_::import_("copy").attr("deepcopy")(field, memo);
            field = nb::borrow(memo[key]);
        } else if (texture_dims(value.type().fields()[i].type) != 0) {
            // The texture itself.
        } else if (struct_pointer(field)) {
            field = deep_copy_of(field, memo);
        }
        set_field(made, i, field);
    }
    return made;
}

// Pickled as the class and the fields by name.
nb::tuple reduce(nb::handle self) {
    StructValue& value = instance(self, "pickle");
    nb::dict state;
    for (std::size_t i = 0; i < value.type().fields().size(); ++i) {
        nb::object field = get_field(self, i);
        if (field.is_none()) continue;
        state[value.type().fields()[i].name.c_str()] = field;
    }
    // Not by a call of its class, whose __init__ may require arguments.
    return nb::make_tuple(nb::module_::import_("warp._weft").attr("_new_struct"),
                          nb::make_tuple(nb::borrow(reinterpret_cast<PyObject*>(Py_TYPE(self.ptr())))), state);
}

void restore(nb::handle self, nb::dict state) {
    const Type type = instance(self, "pickle").type();
    for (auto [name, field] : state) {
        const std::optional<int> index = type.field_index(nb::cast<std::string>(name));
        if (!index) {
            throw UsageError(type.struct_name(),
                             "the pickled struct has a field '" + nb::cast<std::string>(name) +
                                 "', which this class has not; it has " + join_or(field_names(type)),
                             ErrorCategory::value);
        }
        set_field(self, static_cast<std::size_t>(*index), field);
    }
}

PyType_Slot kSlots[] = {
    {Py_tp_traverse, reinterpret_cast<void*>(&StructValue::traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(&StructValue::clear)},
    {0, nullptr},
};

}  // namespace

void bind_structs(nb::module_& m) {
    set_struct_conversions({.write = &write_struct, .read = [](Type type, const void* from) {
                                return struct_to_python(type, from, /*memory=*/nullptr);
                            }});
    nb::class_<StructValue>(m, "StructValue", nb::type_slots(kSlots), "The base of classes made by @wp.struct.")
        .def("__init__", &construct)
        .def("__repr__", &repr_of)
        .def("__copy__", &copy_of)
        .def("__deepcopy__", &deep_copy_of, nb::arg("memo"))
        .def("__reduce__", &reduce)
        .def("__setstate__", &restore, nb::arg("state"));
    m.def(
        "make_struct", &make_struct, nb::arg("name"), nb::arg("module"), nb::arg("qualname"), nb::arg("fields"),
        nb::arg("members"), nb::arg("defaults"), nb::arg("bases") = nb::tuple(), nb::arg("rules") = "",
        "The class of a struct: `fields` are (name, annotation) pairs, `members` its other attributes, `defaults` what "
        "fields start with, by name, `rules` how a dataclass makes instances.");
    m.def(
        "_new_struct",
        [](nb::handle python_class) {
            const std::optional<Type> type =
                PyType_Check(python_class.ptr())
                    ? struct_type_of_class(reinterpret_cast<PyTypeObject*>(python_class.ptr()))
                    : std::nullopt;
            if (!type) throw UsageError("_new_struct()", "expected a struct", ErrorCategory::type);
            nb::object made = new_struct(*type);
            write_defaults(*type, struct_pointer(made)->data());
            return made;
        },
        nb::arg("python_class"), "An instance with the defaults of the fields, without a call of __init__().");
    m.def(
        "is_struct",
        [](nb::handle object) {
            return PyType_Check(object.ptr()) &&
                   struct_type_of_class(reinterpret_cast<PyTypeObject*>(object.ptr())).has_value();
        },
        nb::arg("object").none(), "Whether `object` is a class made by @wp.struct.");
    for (const KnownStruct& known : known_structs()) {
        if (!known.doc) continue;
        nb::dict members;
        members["__doc__"] = known.doc;
        m.attr(known.name) = make_class(known.type(), "warp", known.name, std::move(members), nb::tuple());
    }
}

}  // namespace weft::bindings

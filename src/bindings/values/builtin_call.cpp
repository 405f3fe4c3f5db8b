#include "bindings/values/builtin_call.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>

#include "bindings/python/fastcall.h"
#include "bindings/values/array_value.h"
#include "bindings/values/types.h"
#include "bindings/values/values.h"
#include "frontend/frontend.h"
#include "frontend/objects.h"
#include "ir/typing.h"
#include "program/host/host.h"
#include "program/host/settings.h"
#include "support/error.h"

namespace weft::frontend {

struct HostCalls : bindings::HostBuiltin {
    using HostBuiltin::HostBuiltin;
};

PyObject* call_builtin(PyObject* self, PyObject* arguments, PyObject* keywords) {
    return bindings::guarded([&]() -> PyObject* {
        if (!nb::inst_ready(self)) throw UsageError("Builtin()", "was not initialised", ErrorCategory::type);
        Builtin& builtin = *nb::inst_ptr<Builtin>(self);
        if (!builtin.calls) builtin.calls = std::make_shared<HostCalls>(builtin.name);
        const auto count = static_cast<std::size_t>(PyTuple_GET_SIZE(arguments));
        if (!keywords || PyDict_GET_SIZE(keywords) == 0)
            return builtin.calls->call(&PyTuple_GET_ITEM(arguments, 0), count).release().ptr();
        std::vector<PyObject*> all(&PyTuple_GET_ITEM(arguments, 0), &PyTuple_GET_ITEM(arguments, 0) + count);
        nb::list names;
        PyObject *key, *value;
        for (Py_ssize_t at = 0; PyDict_Next(keywords, &at, &key, &value);) {
            if (value == Py_None) continue;  // dtype=None: the default
            names.append(nb::handle(key));
            all.push_back(value);
        }
        return builtin.calls->call(all.data(), count, nb::tuple(names).ptr()).release().ptr();
    });
}

}  // namespace weft::frontend

namespace weft::bindings {
namespace {

// Type nodes lie at multiples of 8: the low bits are free, and no node has an address below 64.
constexpr std::uintptr_t kIsClass = 1, kIsImmutable = 2, kIntLiteral = 8, kFloatLiteral = 16;
constexpr std::size_t kMostOverloadsShown = 8;
constexpr std::size_t kInlineBlockBytes = 1024;

std::uintptr_t key_of(Type type) { return reinterpret_cast<std::uintptr_t>(type.node()); }

std::uintptr_t key_of(PyObject* object) {
    if (PyFloat_CheckExact(object)) return kFloatLiteral;
    if (PyLong_CheckExact(object)) return kIntLiteral;
    if (const Value* value = value_pointer(object)) return key_of(value->type());
    if (PyBool_Check(object)) return key_of(bool_type()) | kIsImmutable;
    if (const PyArray* array = array_pointer(object))
        return array->is_annotation ? 0 : key_of(Type::array(array->array.dtype, array->array.ndim));
    if (PyType_Check(object)) {
        const std::optional<Type> type = dtype_from_python(object);
        return type ? key_of(*type) | kIsClass : 0;
    }
    const std::optional<Type> type = dtype_from_python(nb::handle(reinterpret_cast<PyObject*>(Py_TYPE(object))));
    return type ? key_of(*type) | kIsImmutable : 0;  // NumPy's scalars, structs
}

// numpy.float64 is a Python float as well: if its own type fits no overload it counts as one.
bool is_numpy_float(PyObject* object) { return PyFloat_Check(object) && !PyFloat_CheckExact(object); }

std::string subject(std::size_t index) { return "argument " + std::to_string(index + 1); }

bool wraps(PyObject* object, Type type) {
    Number number;
    Scalar from;
    if (!PyLong_Check(object) || PyBool_Check(object)) return false;
    return !read_number(object, number, from) || !is_in_range(number, from, type.scalar());
}
// A plain number outside the range of its type, int32 or float32.
bool is_too_large(PyObject* object) {
    if (!PyFloat_CheckExact(object)) return wraps(object, i32_type());
    const double number = PyFloat_AS_DOUBLE(object);
    return std::isfinite(number) && !std::isfinite(static_cast<float>(number));
}

// The attempts after no overload takes the arguments as they are.
enum class Leniency { none, numpy_adapts, as_in_c };

builtins::Argument offer(PyObject* object, const std::string& name, std::size_t index, Leniency leniency) {
    builtins::Argument argument;
    const bool numpy_adapts = leniency == Leniency::numpy_adapts;
    const auto take_literal = [&] {
        Scalar from = Scalar::i64;
        if (leniency == Leniency::as_in_c && is_too_large(object)) {
            const bool is_int = PyLong_Check(object);
            std::byte number[4];
            write_component(object, is_int ? Scalar::i32 : Scalar::f32, number);
            argument.literal = read_scalar(is_int ? Scalar::i32 : Scalar::f32, number);
            if (!is_int) from = Scalar::f64;
        } else if (!read_number(object, argument.literal, from)) {
            from = Scalar::u64;  // more than 64 bits: fits nothing as it is
        }
        argument.type = from == Scalar::u64 ? u64_type() : from == Scalar::f64 ? f32_type() : i32_type();
        argument.is_literal = argument.is_constant = from != Scalar::u64;
    };
    const std::uintptr_t key = key_of(object);
    const bool is_literal = key == kIntLiteral || key == kFloatLiteral;
    if (is_literal || (!key && PyLong_Check(object)) || (numpy_adapts && is_numpy_float(object))) {
        take_literal();
    } else if (PyUnicode_Check(object)) {
        argument.type = Type::string();
    } else if (PyType_Check(object) || !key) {
        if (const std::optional<Type> type = dtype_from_python(object)) {
            argument.is_type = true;
            argument.type = *type;
            return argument;
        }
        const bool is_sequence = PySequence_Check(object) && !PyType_Check(object);
        throw UsageError("wp." + name + "()",
                         subject(index) + " is " + describe(object) +
                             ", which no builtin takes. help: numbers, typed values and arrays are taken" +
                             (is_sequence ? "; make a vector or matrix of a sequence: wp.vec3(...)" : ""),
                         ErrorCategory::type);
    } else if (const PyArray* array = array_pointer(object)) {
        argument.type = Type::array(array->array.dtype, array->array.ndim);
    } else if (const Value* value = value_pointer(object)) {
        argument.type = value->type();
    } else {
        argument.type = *dtype_from_python(nb::handle(reinterpret_cast<PyObject*>(Py_TYPE(object))));
    }
    return argument;
}

std::vector<std::string> keyword_names(PyObject* keywords) {
    std::vector<std::string> names;
    if (!keywords) return names;
    for (nb::handle name : nb::borrow<nb::tuple>(keywords)) names.push_back(nb::cast<std::string>(name));
    return names;
}

// The call runs on the host, and reads the array in place.
void require_memory_of_the_host(const std::string& name, std::size_t index, const runtime::Array& array) {
    if (array.device->is_host_memory) return;
    throw UsageError("wp." + name + "()", subject(index) + " is an array on '" + array.device->alias +
                                              "', and a call outside of kernels reads memory of the CPU. help: "
                                              "pass array.to('cpu'), or call it in a kernel");
}

// Hints at Python functions that do the same.
const char* python_alternative(const std::string& name) {
    if (name == "len") return ". help: Python's len() knows the length of arrays and typed values";
    if (name == "print") return ". help: use Python's print()";
    if (name == "range" || name == "reversed") return ". help: use Python's own";
    if (name.starts_with("atomic_")) return ". help: on the host nothing runs beside you; read and write elements";
    return "";
}

}  // namespace

HostBuiltin::HostBuiltin(std::string name) : name_(std::move(name)) {}

nb::object HostBuiltin::call(PyObject* const* arguments, std::size_t count, PyObject* keywords) {
    const std::size_t all = count + (keywords ? static_cast<std::size_t>(PyTuple_GET_SIZE(keywords)) : 0);
    constexpr std::size_t kMostInKey = 16;
    Key keys[kMostInKey];
    bool is_keyed = all <= kMostInKey;
    for (std::size_t i = 0; is_keyed && i < all; ++i) is_keyed = (keys[i] = key_of(arguments[i])) != 0;

    alignas(64) std::byte inline_block[kInlineBlockBytes];
    std::unique_ptr<std::byte[]> heap_block;
    const auto block_for = [&](const Plan& plan) {
        if (plan.function->block_bytes() <= sizeof inline_block) return inline_block;
        heap_block.reset(new std::byte[plan.function->block_bytes()]);
        return heap_block.get();
    };
    if (is_keyed) {
        if (const Plan* plan = find({keys, all}, count, keywords)) {
            std::byte* block = block_for(*plan);
            if (fill(*plan, arguments, block, true)) return run(*plan, arguments, block);
        }
    }
    if (name_ == "printf") return call_printf(arguments, count, keywords);
    if (name_ == "static" && all == 1 && !keywords) return nb::borrow(arguments[0]);
    if (name_ == "vector" || name_ == "matrix") return anonymous_value(name_ == "matrix", arguments, count, keywords);
    if (builtins::is_for_kernels(name_)) {
        throw UsageError("wp." + name_ + "()", "has a meaning only in kernels and in functions made with @wp.func" +
                                                   std::string(python_alternative(name_)));
    }
    Plan plan = resolve(arguments, count, keywords);
    std::byte* block = block_for(plan);
    if (!fill(plan, arguments, block, false)) throw_no_overload(arguments, all, keywords, {});
    if (is_keyed && plan.is_reusable && !find({keys, all}, count, keywords)) plans_.push_back(plan);
    return run(plan, arguments, block);
}

const HostBuiltin::Plan* HostBuiltin::find(std::span<const Key> key, std::size_t count, PyObject* keywords) const {
    for (const Plan& plan : plans_) {
        if (plan.key.size() != key.size() || plan.keywords.size() != key.size() - count) continue;
        if (!std::equal(key.begin(), key.end(), plan.key.begin())) continue;
        bool same = true;
        for (std::size_t i = 0; i < plan.keywords.size(); ++i)
            same &= plan.keywords[i].ptr() == PyTuple_GET_ITEM(keywords, static_cast<Py_ssize_t>(i));
        if (same) return &plan;
    }
    return nullptr;
}

HostBuiltin::Plan HostBuiltin::resolve(PyObject* const* arguments, std::size_t count, PyObject* keywords) {
    const std::vector<std::string> names = keyword_names(keywords);
    const std::size_t all = count + names.size();
    builtins::Resolution resolution;
    const auto try_with = [&](Leniency leniency) {
        std::vector<builtins::CallArgument> given;
        for (std::size_t i = 0; i < all; ++i)
            given.push_back({i < count ? "" : names[i - count], offer(arguments[i], name_, i, leniency)});
        resolution = builtins::resolve(name_, given);
    };
    const std::span<PyObject* const> objects(arguments, all);
    try_with(Leniency::none);
    if (!resolution.match.ok && std::ranges::any_of(objects, is_numpy_float)) try_with(Leniency::numpy_adapts);
    if (!resolution.match.ok && std::ranges::any_of(objects, is_too_large)) try_with(Leniency::as_in_c);
    if (!resolution.match.ok) throw_no_overload(arguments, all, keywords, resolution.refusals);

    // The machine code depends on the overload, the values of its variables, and the parameters that are given.
    const builtins::Match& match = resolution.match;
    const builtins::Signature& signature = builtins::signature(*match.entry);
    std::string key = match.entry->signature;
    bool depends_on_values = false;
    std::vector<bool> is_given;
    for (std::size_t i = 0; i < match.parameter_types.size(); ++i) {
        is_given.push_back(resolution.slots[i] >= 0);
        key += is_given.back() ? '+' : '-';
        if (!match.parameter_types[i].is_none()) key += std::to_string(key_of(match.parameter_types[i])) + " ";
        const builtins::Parameter& parameter = builtins::parameter_at(signature, i);
        if (!is_given.back()) continue;
        PyObject* argument = arguments[resolution.slots[i]];
        depends_on_values |= parameter.is_static && !PyType_Check(argument);
        if (parameter.is_inout && !value_pointer(argument)) {
            throw UsageError("wp." + name_ + "()",
                             "argument '" + parameter.name +
                                 "' is changed by the call and must be a typed value, such "
                                 "as " +
                                 match.parameter_types[i].python_name() + "(...); got " + describe(argument),
                             ErrorCategory::type);
        }
    }
    for (const auto& [name, type] : match.types) key += name + "=" + std::to_string(key_of(type)) + " ";
    for (const auto& [name, size] : match.sizes) key += name + "=" + std::to_string(size) + " ";
    std::shared_ptr<const program::HostFunction>& function = functions_[key];
    if (!function) {
        for (const Type type : match.result.is_tuple() ? match.result.elements() : std::vector<Type>{match.result}) {
            if (type.is_struct() && ir::holds_array(type)) {
                throw UsageError("wp." + name_ + "()",
                                 "gives " + type.python_name() +
                                     ", a struct with arrays, which only kernels can have "
                                     "as a result",
                                 ErrorCategory::type);
            }
        }
        function = std::make_shared<program::HostFunction>(match, is_given, program::settings().cache_kernels);
    }
    Plan plan;
    plan.function = function;
    plan.slots = resolution.slots;
    plan.is_reusable = !depends_on_values;
    for (std::size_t i = 0; i < all; ++i) plan.key.push_back(key_of(arguments[i]));
    for (std::size_t i = count; i < all; ++i)
        plan.keywords.push_back(nb::borrow(PyTuple_GET_ITEM(keywords, static_cast<Py_ssize_t>(i - count))));
    return plan;
}

// Writes the arguments into `block`. False if a plain number does not fit the type that the plan chose for it.
// `in_range` also refuses numbers that would wrap, for which another overload may be right.
bool HostBuiltin::fill(const Plan& plan, PyObject* const* arguments, std::byte* block, bool in_range) const {
    const program::HostFunction& function = *plan.function;
    function.prepare(block);
    for (std::size_t i = 0; i < plan.slots.size(); ++i) {
        const program::HostFunction::ArgumentSlot& slot = function.arguments()[i];
        if (slot.type.is_none() || plan.slots[i] < 0) continue;
        PyObject* argument = arguments[plan.slots[i]];
        if (slot.type.is_array()) {
            const PyArray& array = *array_pointer(argument);
            require_memory_of_the_host(name_, static_cast<std::size_t>(plan.slots[i]), array.array);
            std::memcpy(block + slot.offset, &escaping_view(array), sizeof(ArrayView));
        } else if ((in_range && slot.type.is_int() && wraps(argument, slot.type)) ||
                   !write_value(argument, slot.type, block + slot.offset)) {
            return false;
        }
    }
    return true;
}

// A result whose type a plain Python number stands for becomes one; other scalars keep their type, so that the next
// call computes in it.
nb::object HostBuiltin::run(const Plan& plan, PyObject* const* arguments, std::byte* block) const {
    const program::HostFunction& function = *plan.function;
    const std::size_t count = function.results().size();
    struct Outcome {
        nb::object object;
        alignas(8) std::byte number[8];
        std::vector<std::byte> bytes;
    };
    Outcome single;
    std::vector<Outcome> several(function.gives_tuple() ? count : 0);
    const auto outcome = [&](std::size_t i) -> Outcome& { return function.gives_tuple() ? several[i] : single; };
    for (std::size_t i = 0; i < count; ++i) {
        const program::HostFunction::ArgumentSlot& slot = function.results()[i];
        Outcome& result = outcome(i);
        void* memory = result.number;
        if (slot.type.is_struct()) {
            result.bytes.resize(static_cast<std::size_t>(slot.type.size_bytes()));
            memory = result.bytes.data();
        } else if (slot.type != f32_type() && slot.type != i32_type() && !slot.type.is_bool()) {
            result.object = new_value(slot.type);
            memory = value_pointer(result.object)->data();
        }
        program::HostFunction::set_target(block, slot, memory);
    }
    for (const auto& changed : function.changed()) {
        PyObject* argument = arguments[plan.slots[changed.argument]];
        program::HostFunction::set_target(block, changed.slot, value_pointer(argument)->data());
    }
    function.run(block);
    program::flush_prints();
    const auto taken = [&](std::size_t i) {
        Outcome& result = outcome(i);
        const Type type = function.results()[i].type;
        if (result.object.is_valid() && type.is_scalar() && program::settings().legacy_scalar_return_types)
            return value_to_python(type, value_pointer(result.object)->data());
        if (result.object.is_valid()) return std::move(result.object);
        return value_to_python(type, type.is_struct() ? result.bytes.data() : result.number);
    };
    if (count == 0) return nb::none();
    if (!function.gives_tuple()) return taken(0);
    nb::object tuple = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(count)));
    for (std::size_t i = 0; i < count; ++i)
        PyTuple_SET_ITEM(tuple.ptr(), static_cast<Py_ssize_t>(i), taken(i).release().ptr());
    return tuple;
}

// Compiled for each combination of texts and types.
nb::object HostBuiltin::call_printf(PyObject* const* arguments, std::size_t count, PyObject* keywords) {
    if (keywords) throw UsageError("wp.printf()", "takes no keyword arguments", ErrorCategory::type);
    std::vector<program::HostFunction::Printed> printed;
    std::string key;
    for (std::size_t i = 0; i < count; ++i) {
        Number number;
        Scalar from;
        if (PyUnicode_Check(arguments[i])) {
            const std::string text = nb::cast<std::string>(nb::handle(arguments[i]));
            key += "\"" + text + "\"" + std::to_string(text.size());
            printed.emplace_back(text);
        } else if (read_number(arguments[i], number, from)) {
            if (PyLong_CheckExact(arguments[i]) && is_in_range(number, from, Scalar::i32)) from = Scalar::i32;
            printed.emplace_back(Type::scalar(from));
            key += info(from).ir;
        } else {
            throw UsageError("wp.printf()",
                             subject(i) + " is " + describe(arguments[i]) +
                                 ", expected a number or a text. help: give components one by one",
                             ErrorCategory::type);
        }
    }
    std::shared_ptr<const program::HostFunction>& function = functions_[key];
    if (!function)
        function = std::make_shared<program::HostFunction>(std::move(printed), program::settings().cache_kernels);
    std::vector<std::byte> block(function->block_bytes());
    function->prepare(block.data());
    for (std::size_t i = 0; i < count; ++i) {
        const program::HostFunction::ArgumentSlot& slot = function->arguments()[i];
        if (slot.type.is_none()) continue;
        WEFT_CHECK(write_value(arguments[i], slot.type, block.data() + slot.offset), "a number of another type");
    }
    function->run(block.data());
    program::flush_prints();
    return nb::none();
}

void HostBuiltin::throw_no_overload(PyObject* const* arguments, std::size_t count, PyObject* keywords,
                                    const std::vector<std::string>& refusals) const {
    const std::vector<std::string> names = keyword_names(keywords);
    std::string text = "no overload takes (";
    for (std::size_t i = 0; i < count; ++i) {
        if (i) text += ", ";
        if (i >= count - names.size()) text += names[i - (count - names.size())] + "=";
        const PyArray* array = array_pointer(arguments[i]);
        text += array ? Type::array(array->array.dtype, array->array.ndim).python_name() : describe(arguments[i]);
    }
    text += ")";
    for (std::size_t i = 0; i < refusals.size() && i < kMostOverloadsShown; ++i) text += "\n  note: " + refusals[i];
    if (refusals.size() > kMostOverloadsShown)
        text += "\n  note: and " + std::to_string(refusals.size() - kMostOverloadsShown) + " more";
    throw UsageError("wp." + name_ + "()", text, ErrorCategory::type);
}

HostBuiltin& host_builtin(const char* name) {
    static auto* builtins = new std::map<std::string_view, HostBuiltin>;  // leaked: outlives the interpreter
    return builtins->try_emplace(name, name).first->second;
}

nb::object anonymous_value(bool is_matrix, PyObject* const* arguments, std::size_t count, PyObject* keywords) {
    const char* api = is_matrix ? "wp.matrix()" : "wp.vector()";
    const char* extent_name = is_matrix ? "shape" : "length";
    nb::object extent, dtype;
    const std::vector<std::string> names = keyword_names(keywords);
    for (std::size_t i = 0; i < names.size(); ++i) {
        if (names[i] != "dtype" && names[i] != extent_name) {
            throw UsageError(api, "has no parameter '" + names[i] + "'. help: it has " + extent_name + " and dtype",
                             ErrorCategory::type);
        }
        (names[i] == "dtype" ? dtype : extent) = nb::borrow(arguments[count + i]);
    }
    // The first typed component decides on the type; plain numbers alone make float32 or int32.
    if (!dtype.is_valid()) {
        bool is_float = count == 0;
        std::optional<Type> typed;
        for (std::size_t i = 0; i < count && !typed; ++i) {
            is_float |= PyFloat_CheckExact(arguments[i]);
            if (PyFloat_CheckExact(arguments[i]) || PyLong_CheckExact(arguments[i])) continue;
            typed = dtype_from_python(nb::handle(reinterpret_cast<PyObject*>(Py_TYPE(arguments[i]))));
            if (!typed || !(typed->is_scalar() || typed->is_numeric_aggregate())) {
                throw UsageError(api,
                                 "argument " + std::to_string(i + 1) + " is " + describe(arguments[i]) +
                                     ", expected numbers; with " + extent_name +
                                     "= and dtype= they may be left "
                                     "out",
                                 ErrorCategory::type);
            }
        }
        dtype = dtype_to_python(typed ? typed->scalar_type() : is_float ? f32_type() : i32_type());
    }
    if (!extent.is_valid()) {
        const Value* only = count == 1 ? value_pointer(arguments[0]) : nullptr;
        const bool is_vector = only && only->type().is_vector();
        if (is_matrix || (count < 2 && !is_vector)) {
            throw UsageError(api,
                             is_matrix ? "needs its shape. help: wp.matrix(..., shape=(3, 2))"
                                       : "needs its length. help: wp.vector(length=3, dtype=float)",
                             ErrorCategory::type);
        }
        extent = nb::int_(is_vector ? only->type().rows() : static_cast<int>(count));
    }
    nb::module_ types = nb::module_::import_("warp._weft");
    nb::object made = types.attr(is_matrix ? "matrix" : "vector")(extent, dtype);
    nb::object result = nb::steal(PyObject_Vectorcall(made.ptr(), arguments, count, nullptr));
    if (!result.is_valid()) throw nb::python_error();
    return result;
}

}  // namespace weft::bindings

#include "frontend/watched_globals.h"

#include <algorithm>
#include <utility>

#include "frontend/binding.h"
#include "frontend/python_text.h"

namespace weft::frontend {

namespace {

using sema::Binding;

// Changes with every change of the dict. From Python 3.12 on always 0, so that each name is looked up.
std::uint64_t version_of(nb::handle dict) {
#if PY_VERSION_HEX < 0x030C0000
    return reinterpret_cast<PyDictObject*>(dict.ptr())->ma_version_tag;
#else
    static_cast<void>(dict);
    return 0;
#endif
}
constexpr bool kHasVersions = PY_VERSION_HEX < 0x030C0000;

bool means_the_same(const Binding& a, const Binding& b) {
    const auto same_number = [](const Number& x, const Number& y) {
        return x.is_float == y.is_float && (x.is_float ? x.f == y.f || (x.f != x.f && y.f != y.f) : x.i == y.i);
    };
    return a.kind == b.kind && a.type == b.type && a.is_literal == b.is_literal && a.text == b.text &&
           std::ranges::equal(a.numbers, b.numbers, same_number) &&
           std::ranges::equal(a.elements, b.elements, means_the_same);
}

}  // namespace

WatchedGlobals::~WatchedGlobals() {
    if (!Py_IsInitialized()) {  // after Python's end nothing can be released
        for (Dict& dict : dicts_) {
            static_cast<void>(dict.dict.release());
            for (Name& name : dict.names)
                for (nb::object* object : {&name.name, &name.value}) static_cast<void>(object->release());
        }
        for (Name& name : variables_)
            for (nb::object* object : {&name.name, &name.value, &name.cell}) static_cast<void>(object->release());
        return;
    }
    nb::gil_scoped_acquire acquire;
    dicts_.clear();
    variables_.clear();
}

void WatchedGlobals::add_global(nb::handle dict, nb::handle name, nb::handle value, Binding meant) {
    auto known = std::ranges::find_if(dicts_, [&](const Dict& one) { return one.dict.is(dict); });
    if (known == dicts_.end()) known = dicts_.insert(known, {nb::borrow(dict), version_of(dict), {}});
    known->names.push_back({nb::borrow(name), nb::borrow(value), std::move(meant), {}});
}

void WatchedGlobals::add_variable(nb::handle cell, nb::handle name, nb::handle value, Binding meant) {
    variables_.push_back({nb::borrow(name), nb::borrow(value), std::move(meant), nb::borrow(cell)});
}

// Empty if the name has the same meaning as before; `now` may be null.
std::string WatchedGlobals::changed(Name& name, PyObject* now) {
    if (now == nullptr || now == name.value.ptr()) return {};
    const nb::object value = nb::borrow(now);
    if (means_the_same(binding_from_python(value), name.meant)) {
        name.value = value;
        return {};
    }
    return "'" + utf8_text(name.name) + "' was " + utf8_text(nb::repr(name.value)) + " and is " +
           utf8_text(nb::repr(value)) + " now";
}

std::string WatchedGlobals::changed() {
    for (Name& variable : variables_)
        if (std::string text = changed(variable, PyCell_GET(variable.cell.ptr())); !text.empty()) return text;
    for (Dict& dict : dicts_) {
        const std::uint64_t version = version_of(dict.dict);
        if (kHasVersions && version == dict.version) continue;
        for (Name& name : dict.names) {
            PyObject* const now = PyDict_GetItemWithError(dict.dict.ptr(), name.name.ptr());
            if (now == nullptr && PyErr_Occurred()) throw nb::python_error();
            if (std::string text = changed(name, now); !text.empty()) return text;
        }
        dict.version = version;
    }
    return {};
}

}  // namespace weft::frontend

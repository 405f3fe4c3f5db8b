#include "types/struct_key.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <cstdio>

namespace weft {
namespace {

// FNV-1a: the same in every process, so that the disk cache finds entries of earlier ones.
std::uint64_t hash_of(const std::string& text) {
    std::uint64_t hash = 0xcbf29ce484222325u;
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    return hash;
}

// The type with the keys of the structs in it, which its name does not contain.
std::string signature_of(Type type) {
    if (type.is_struct()) return type.struct_key();
    if (type.is_array()) return "array" + std::to_string(type.ndim()) + "<" + signature_of(type.element()) + ">";
    return type.ir_name();
}

}  // namespace

std::string struct_key(const std::string& module, const std::string& qualname, const std::vector<Type::Field>& fields,
                       const std::string& rules) {
    std::string text = rules;
    for (const Type::Field& field : fields) {
        text += field.name + ":" + signature_of(field.type);
        for (const Number number : field.default_value)
            text += "=" + std::to_string(number.is_float ? std::bit_cast<std::int64_t>(number.f) : number.i);
        text += ";";
    }
    char digits[24];
    std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(hash_of(text)));
    return module + ":" + qualname + ":" + digits;
}

std::string redefinition_text(Type found, Type expected) {
    if (found.is_array() && expected.is_array()) return redefinition_text(found.element(), expected.element());
    if (!found.is_struct() || !expected.is_struct() || found == expected) return {};
    if (found.struct_name() != expected.struct_name()) return {};
    const auto class_of = [](Type type) { return type.struct_key().substr(0, type.struct_key().rfind(':')); };
    const std::string name = class_of(expected);
    if (class_of(found) != name) return "these are two structs of one name, " + class_of(found) + " and " + name;
    return expected.struct_name() +
           " was defined again, with other fields: run the definitions that use it again (in a notebook, their cells)";
}

Type indexed_struct(Type array) {
    std::string name = "indexedarray" + (array.ndim() == 1 ? "" : std::to_string(array.ndim()) + "d") + "_" +
                       array.element().python_name();
    std::replace_if(name.begin(), name.end(), [](unsigned char c) { return !std::isalnum(c); }, '_');
    std::vector<Type::Field> fields(1);
    fields[0].name = "data";
    fields[0].type = array;
    for (int axis = 0; axis < array.ndim(); ++axis) {
        Type::Field field;
        field.name = "indices" + std::to_string(axis);
        field.type = Type::array(Type::scalar(Scalar::i32), 1);
        fields.push_back(std::move(field));
    }
    std::string key = struct_key("warp._arrays.indexed", name, fields);
    return Type::structure(std::move(name), std::move(key), std::move(fields));
}

}  // namespace weft

#include "codegen/native.h"

#include <algorithm>
#include <array>
#include <map>

#include "binary/binary.h"
#include "codegen/value.h"
#include "support/error.h"

namespace weft::codegen {

namespace {

constexpr std::array kWordsOfCpp = {
    "alignas",   "alignof",  "and",      "and_eq",    "asm",          "auto",          "bitand",
    "bitor",     "bool",     "break",    "case",      "catch",        "char",          "char16_t",
    "char32_t",  "class",    "compl",    "const",     "const_cast",   "constexpr",     "continue",
    "decltype",  "default",  "delete",   "do",        "double",       "dynamic_cast",  "else",
    "enum",      "explicit", "export",   "extern",    "false",        "float",         "for",
    "friend",    "goto",     "if",       "inline",    "int",          "long",          "mutable",
    "namespace", "new",      "noexcept", "not",       "not_eq",       "nullptr",       "operator",
    "or",        "or_eq",    "private",  "protected", "public",       "register",      "reinterpret_cast",
    "return",    "short",    "signed",   "sizeof",    "static",       "static_assert", "static_cast",
    "struct",    "switch",   "template", "this",      "thread_local", "throw",         "true",
    "try",       "typedef",  "typeid",   "typename",  "union",        "unsigned",      "using",
    "virtual",   "void",     "volatile", "wchar_t",   "while",        "xor",           "xor_eq",
};

// Include directives move in front of the function, to the scope that headers expect.
bool is_include(const std::string& line) {
    const std::size_t hash = line.find_first_not_of(" \t");
    if (hash == std::string::npos || line[hash] != '#') return false;
    const std::size_t word = line.find_first_not_of(" \t", hash + 1);
    return word != std::string::npos && line.compare(word, 7, "include") == 0;
}

// Writes the text for one call.
class Writer {
public:
    explicit Writer(const ir::Operation& call) : call_(call) {}

    std::string write() {
        const ir::NativeSnippet& snippet = *call_.library->native;
        const Type result = call_.results.empty() ? Type::none() : call_.result()->type;
        const std::string result_name = result.is_none() ? "void" : name_of(result);
        std::string parameters, formals, arguments, before;
        // A call that changes parameters passed by reference returns a struct: the result, if there is one, then these.
        std::size_t references = 0;
        for (const std::string& name : snippet.parameters) references += name.starts_with('&');
        const bool returns = !result.is_none() && (references == 0 || result.fields().size() > references);
        std::size_t next = returns ? 1 : 0;
        for (std::size_t i = 0; i < call_.operands.size(); ++i) {
            const std::string number = std::to_string(i), type = name_of(call_.operands[i]->type);
            const std::string& name = snippet.parameters[i];
            const bool is_reference = name.starts_with('&'), is_gradient = name.starts_with('?');
            const std::string own_name = name.substr(is_reference || is_gradient);
            check_name(own_name, "parameter");
            parameters += (i ? ", " : "") + type + (is_reference ? "& " : " ") + own_name;
            formals += ", char* a" + number + ", long s" + number;
            std::string given = "*reinterpret_cast<" + type + "*>(a" + number + " + lane * s" + number + ")";
            if (is_reference) {
                const std::string part = "to.part" + std::to_string(next++);
                before += "        " + part + " = " + given + ";\n";
                given = part;
            } else if (is_gradient) {
                const std::string sizes =
                    name_of(call_.operands[i]->type.element()) + ", " + std::to_string(call_.operands[i]->type.ndim());
                before += "        wp::detail::Gradient<" + sizes + "> g" + number + ";\n";
                given = "g" + number + ".of(" + given + ")";
            }
            arguments += (i ? ", " : "") + given;
        }
        const std::string own_result = !returns ? "void" : references ? name_of(result.fields()[0].type) : result_name;
        std::string body, text;
        for (std::size_t i = 0; i < snippet.source->lines.size(); ++i) {
            const std::string& line = snippet.source->lines[i];
            if (is_include(line))
                text += "#line " + std::to_string(i + 1) + " \"" + kSnippetName + "\"\n" + line + "\n";
            body += (is_include(line) ? "" : line) + "\n";
        }
        text += "#line 1 \"" + std::string(kAroundName) + "\"\nnamespace {\nusing namespace wp;\n" + structs_;
        text += "inline " + own_result + " " + kFunctionName + "(" + parameters + ") {\n";
        text += "#line 1 \"" + std::string(kSnippetName) + "\"\n" + body;
        text += "#line 1 \"" + std::string(kAroundName) + "\"\n}\n}\n";
        text += "extern \"C\" void " + std::string(kNativeSymbol) + "(unsigned long lanes, void* result" + formals +
                ") {\n    WEFT_EACH_LANE(lanes) {\n";
        text += "        (void)lane;\n        (void)result;\n";
        if (!result.is_none()) text += "        auto& to = static_cast<" + result_name + "*>(result)[lane];\n";
        text += before;
        text += "        " +
                std::string(!returns     ? ""
                            : references ? "to.part0 = "
                                         : "to = ") +
                kFunctionName + "(" + arguments + ");\n    }\n}\n";
        return text;
    }

private:
    [[noreturn]] void fail(const std::string& message, const std::string& help) const {
        throw CompileError(call_.span, message, {{Note::Kind::help, help, {}}}, ErrorCategory::name);
    }

    void check_name(const std::string& name, const std::string& what) const {
        if (std::find(kWordsOfCpp.begin(), kWordsOfCpp.end(), name) == kWordsOfCpp.end()) return;
        fail(what + " '" + name + "' of the C++ function '" + call_.library->symbol + "' is a word of C++",
             "give the " + what + " another name");
    }

    static std::string name_of(Scalar scalar) {
        return scalar == Scalar::boolean ? "bool" : std::string("wp::") + info(scalar).python;
    }

    std::string name_of(Type type) {
        const auto sized = [](int n) { return std::to_string(n) + ", "; };
        switch (type.kind()) {
            case Kind::scalar:
                return name_of(type.scalar());
            case Kind::vector:
                return "wp::vec_t<" + sized(type.rows()) + name_of(type.scalar()) + ">";
            case Kind::matrix:
                return "wp::mat_t<" + sized(type.rows()) + sized(type.cols()) + name_of(type.scalar()) + ">";
            case Kind::quaternion:
                return "wp::quat_t<" + name_of(type.scalar()) + ">";
            case Kind::transform:
                return "wp::transform_t<" + name_of(type.scalar()) + ">";
            case Kind::array:
                return "wp::array_t<" + name_of(type.element()) + ", " + std::to_string(type.ndim()) + ">";
            case Kind::structure:
                return struct_name(type);
            default:
                throw InternalError("a C++ function with a " + type.python_name());
        }
    }

    // A struct with a name that is taken gets a number behind it.
    std::string struct_name(Type type) {
        if (const auto known = struct_names_.find(type.node()); known != struct_names_.end()) return known->second;
        std::string name = type.struct_name();
        check_name(name, "struct");
        for (int n = 2; std::any_of(struct_names_.begin(), struct_names_.end(),
                                    [&](const auto& other) { return other.second == name; });
             ++n)
            name = type.struct_name() + "_" + std::to_string(n);
        struct_names_.emplace(type.node(), name);
        std::string text = "struct " + name + " {\n";
        for (const Type::Field& field : type.fields()) {
            check_name(field.name, "field");
            text += "    " + name_of(field.type) + " " + field.name + ";\n";
        }
        text += "};\nstatic_assert(sizeof(" + name + ") == " + std::to_string(type.size_bytes()) + ");\n";
        for (const Type::Field& field : type.fields())
            text += "static_assert(__builtin_offsetof(" + name + ", " + field.name +
                    ") == " + std::to_string(field.offset) + ");\n";
        structs_ += text;  // behind the structs of its fields
        return name;
    }

    const ir::Operation& call_;
    std::string structs_;
    std::map<const TypeNode*, std::string> struct_names_;
};

}  // namespace

std::size_t NativeFunctions::number(const ir::Operation& call) {
    std::string text = Writer(call).write();
    for (std::size_t i = 0; i < functions_.size(); ++i)
        if (functions_[i].text == text) return i;
    const ir::NativeSnippet& snippet = *call.library->native;
    std::string definitions;
    if (std::ranges::any_of(snippet.parameters, [](const std::string& name) { return name.starts_with('?'); }))
        definitions += "#define WEFT_ADJOINT\n";
    if (std::ranges::any_of(snippet.source->lines, is_include)) definitions += "#define WEFT_INCLUDES\n";
    functions_.push_back({call.library->symbol, snippet.source, std::move(definitions), std::move(text), call.span});
    return functions_.size() - 1;
}

}  // namespace weft::codegen

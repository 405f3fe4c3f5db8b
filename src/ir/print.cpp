// IR as text. The grammar is in docs/ir.md; parse.cpp reads it. Every compile prints (the disk cache hashes the text),
// hence appends to one string and no streams.
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <unordered_map>
#include <unordered_set>

#include "ir/ir.h"
#include "ir/text.h"
#include "ir/typing.h"

namespace weft::ir {

bool is_word_character(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

bool is_word(std::string_view text) {
    if (text.empty() || (text[0] >= '0' && text[0] <= '9')) return false;
    for (const char c : text)
        if (!is_word_character(c)) return false;
    return true;
}

void append_quoted(std::string& out, std::string_view text) {
    static constexpr char kHex[] = "0123456789abcdef";
    out += '"';
    for (const char c : text) {
        const unsigned char byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\') {
            out += '\\';
            out += c;
        } else if (c == '\n') {
            out += "\\n";
        } else if (byte < 0x20 || byte == 0x7F) {
            out += "\\x";
            out += kHex[byte >> 4];
            out += kHex[byte & 15];
        } else {
            out += c;
        }
    }
    out += '"';
}

void append_number(std::string& out, Number number, Scalar scalar) {
    char buffer[40];
    char* end = buffer;
    if (scalar == Scalar::boolean) {
        out += number.i ? "true" : "false";
        return;
    }
    if (!number.is_float) {
        end = scalar == Scalar::u64
                  ? std::to_chars(buffer, buffer + sizeof buffer, static_cast<std::uint64_t>(number.i)).ptr
                  : std::to_chars(buffer, buffer + sizeof buffer, number.i).ptr;
    } else if (std::isnan(number.f)) {
        // NaNs differ in sign and payload, which a bitcast can see.
        const std::uint64_t bits = std::bit_cast<std::uint64_t>(number.f);
        if (bits == std::bit_cast<std::uint64_t>(std::numeric_limits<double>::quiet_NaN())) {
            out += "nan";
            return;
        }
        out += "nan:0x";
        end = std::to_chars(buffer, buffer + sizeof buffer, bits, 16).ptr;
    } else if (scalar == Scalar::f32) {
        end = std::to_chars(buffer, buffer + sizeof buffer, static_cast<float>(number.f))
                  .ptr;  // the shortest that reads back
    } else {
        end = std::to_chars(buffer, buffer + sizeof buffer, number.f).ptr;
    }
    out.append(buffer, end);
}

namespace {

bool same_bits(const Number& a, const Number& b) {
    return a.is_float == b.is_float && a.i == b.i &&
           std::bit_cast<std::uint64_t>(a.f) == std::bit_cast<std::uint64_t>(b.f);
}

class Printer {
public:
    explicit Printer(bool names) : names_(names) {}

    // Structs are declared before the functions that mention them, inner ones first.
    void declare_structs(const Function& function) {
        for (const Value* parameter : function.parameters()) declare(parameter->type);
        declare(function.result);
        declare_structs(function.body);
    }

    void function(const Function& function) {
        numbers_.assign(static_cast<std::size_t>(function.value_count()), -1);
        if (names_) labels_.assign(static_cast<std::size_t>(function.value_count()), {});
        used_labels_.clear();
        next_ = 0;
        last_span_ = {};

        out_ += function.is_kernel ? "kernel " : "func ";
        symbol(function.name);
        out_ += '(';
        for (std::size_t i = 0; i < function.parameters().size(); ++i) {
            const Value* parameter = function.parameters()[i];
            if (i) out_ += ", ";
            define(parameter);
            use(parameter);
            out_ += ": ";
            type(parameter->type);
            if (const ImplicitParameter* implicit = function.implicit(parameter)) {
                out_ += implicit->kind == ImplicitParameter::Kind::copy     ? " copy "
                        : implicit->kind == ImplicitParameter::Kind::after  ? " after "
                        : implicit->kind == ImplicitParameter::Kind::order  ? " order "
                        : implicit->kind == ImplicitParameter::Kind::sorted ? " sorted "
                        : implicit->kind == ImplicitParameter::Kind::number ? " number "
                        : implicit->kind == ImplicitParameter::Kind::log    ? " log "
                                                                            : " returned ";
                integer(implicit->of);
            }
        }
        out_ += ')';
        if (!function.result.is_none()) {
            out_ += " -> ";
            type(function.result);
        }
        for (const auto& [word, custom] : {std::pair{" gradient ", function.gradient},
                                           {" replay ", function.replay},
                                           {" reverse ", function.reverse_of}}) {
            if (!custom) continue;
            out_ += word;
            symbol(custom->name);
        }
        if (function.sees_after) out_ += " after";
        if (function.is_adjoint) out_ += " adjoint";
        if (function.tid_rank) {
            out_ += " tid ";
            integer(function.tid_rank);
        }
        for (const int parameter : function.uncontended_parameters) {
            out_ += " uncontended ";
            integer(parameter);
        }
        out_ += " {";
        print_location(function.span);
        out_ += '\n';
        for (const Operation* operation : function.body.operations) line(*operation, 1);
        out_ += "}\n";
    }

    std::string take() { return std::move(out_); }
    void blank_line() {
        if (!out_.empty()) out_ += '\n';
    }

private:
    // ---- names ----

    void integer(std::int64_t value) {
        char buffer[24];
        out_.append(buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr);
    }

    // Omitted attributes have their defaults of ir.h.
    void library(const LibraryFunction& function) {
        if (function.form == LibraryFunction::Form::lanes) out_ += " lanes";
        if (function.form == LibraryFunction::Form::masked) out_ += " masked";
        if (!function.is_uniform) out_ += " varying";
        const auto operands = [&](const char* word, const std::vector<int>& numbers) {
            for (const int number : numbers) {
                out_ += word;
                integer(number);
            }
        };
        operands(" reads ", function.reads);
        operands(" writes ", function.writes);
        const auto symbol_of = [&](const char* word, const std::string& symbol) {
            if (symbol.empty()) return;
            out_ += word;
            append_quoted(out_, symbol);
        };
        symbol_of(" adjoint ", function.adjoint);
        symbol_of(" tangent ", function.tangent);
    }

    // The names of the parameters, then the C++.
    void native(const NativeSnippet& snippet) {
        out_ += " native(";
        for (const std::string& name : snippet.parameters) {
            append_quoted(out_, name);
            out_ += ", ";
        }
        std::string text;
        for (const std::string& line : snippet.source->lines)
            text += (&line == snippet.source->lines.data() ? "" : "\n") + line;
        append_quoted(out_, text);
        out_ += ')';
    }

    void symbol(std::string_view name) {
        out_ += '@';
        for (const char c : name) {
            if (is_word_character(c) || c == '.') continue;
            append_quoted(out_, name);
            return;
        }
        if (name.empty()) {
            out_ += "\"\"";
        } else {
            out_ += name;
        }
    }

    void define(const Value* value) {
        const std::size_t id = static_cast<std::size_t>(value->id);
        numbers_[id] = next_++;
        if (!names_ || !is_word(value->name)) return;
        // The first value of a name has it alone; later ones add their number.
        labels_[id] = value->name;
        if (!used_labels_.insert(value->name).second) labels_[id] += "." + std::to_string(numbers_[id]);
    }

    void use(const Value* value) {
        out_ += '%';
        if (!value || static_cast<std::size_t>(value->id) >= numbers_.size() ||
            numbers_[static_cast<std::size_t>(value->id)] < 0) {
            out_ += value ? "undefined" : "null";  // only in a function that verify() refuses
            return;
        }
        const std::size_t id = static_cast<std::size_t>(value->id);
        if (names_ && !labels_[id].empty()) {
            out_ += labels_[id];
        } else {
            integer(numbers_[id]);
        }
    }

    void uses(std::span<Value* const> values) {
        for (std::size_t i = 0; i < values.size(); ++i) {
            if (i) out_ += ", ";
            use(values[i]);
        }
    }

    // ---- types ----

    void type(Type t) {
        const auto found = type_names_.find(t);
        if (found != type_names_.end()) {
            out_ += found->second;
            return;
        }
        out_ += type_names_[t] = type_text(t);
    }

    // Like Type::ir_name(), but a struct has the label it was declared under here.
    std::string type_text(Type t) const {
        switch (t.kind()) {
            case Kind::structure:
                return "struct @" + struct_labels_.at(t);
            case Kind::array:
                return "array<" + type_text(t.element()) + ", " + std::to_string(t.ndim()) + ">";
            case Kind::tile: {
                const std::string own = t.ir_name();
                return "tile<" + type_text(t.element()) + own.substr(own.rfind(','));
            }
            case Kind::tuple: {
                std::string text = "tuple<";
                for (std::size_t i = 0; i < t.elements().size(); ++i)
                    text += (i ? ", " : "") + type_text(t.elements()[i]);
                return text + ">";
            }
            default:
                return t.ir_name();
        }
    }

    void declare_structs(const Region& region) {
        for (const Value* argument : region.arguments) declare(argument->type);
        for (const Operation* operation : region.operations) {
            for (const Value* result : operation->results) declare(result->type);
            for (const Region* inner : operation->regions) declare_structs(*inner);
        }
    }

    void declare(Type t) {
        if (t.is_none() || t.is_scalar() || t.is_numeric_aggregate() || !seen_types_.insert(t).second) return;
        if (t.is_array() || t.is_tile()) declare(t.element());
        if (t.is_tuple()) {
            for (Type element : t.elements()) declare(element);
        }
        if (!t.is_struct()) return;
        for (const Type::Field& field : t.fields()) declare(field.type);

        std::string label;
        for (const char c : t.struct_name()) label += is_word_character(c) ? c : '_';
        if (label.empty()) label = "_";
        if (!used_struct_labels_.insert(label).second) {
            label += "." + std::to_string(struct_labels_.size());
            used_struct_labels_.insert(label);
        }
        out_ += "struct @" + label + " = ";
        append_quoted(out_, t.struct_name());
        out_ += ' ';
        append_quoted(out_, t.struct_key());
        out_ += " {";
        for (std::size_t i = 0; i < t.fields().size(); ++i) {
            out_ += i ? ", " : " ";
            if (is_word(t.fields()[i].name)) {
                out_ += t.fields()[i].name;
            } else {
                append_quoted(out_, t.fields()[i].name);
            }
            out_ += ": ";
            type(t.fields()[i].type);
        }
        out_ += " }\n";
        struct_labels_.emplace(t, std::move(label));
    }

    // ---- operations ----

    void print_location(const Span& span) {
        if (!names_ || !span || (span.source == last_span_.source && span.line == last_span_.line)) return;
        last_span_ = span;
        out_ += "  // ";
        out_ += span.source->path;
        out_ += ':';
        integer(span.line);
    }

    void indent(int depth) { out_.append(static_cast<std::size_t>(depth) * 2, ' '); }

    void line(const Operation& operation, int depth) {
        indent(depth);
        for (const Value* result : operation.results) define(result);
        uses(operation.results);
        if (!operation.results.empty()) out_ += " = ";
        if (!operation.regions.empty()) {
            structured(operation, depth);
            return;
        }
        plain(operation);
        print_location(operation.span);
        out_ += '\n';
    }

    void plain(const Operation& operation);
    void structured(const Operation& operation, int depth);
    void constant(const Operation& operation);
    void region(const Region& region, int depth);
    void carried(const Region& region, std::size_t first_argument, std::span<Value* const> inits);

    void static_path(const std::vector<std::int64_t>& path) {
        out_ += '[';
        for (std::size_t i = 0; i < path.size(); ++i) {
            if (i) out_ += ", ";
            integer(path[i]);
        }
        out_ += ']';
    }

    // "%a[%i, %j], %rest": the first operand, `count` indices from operand `first`, then the operands in `rest`.
    void indexed(const Operation& operation, std::size_t first, std::size_t count, std::span<Value* const> rest) {
        const std::span<Value* const> operands(operation.operands);
        uses(operands.first(1));
        out_ += '[';
        uses(operands.subspan(first, std::min(count, operands.size() - first)));
        out_ += ']';
        for (const Value* value : rest) {
            out_ += ", ";
            use(value);
        }
    }

    bool names_;
    std::string out_;
    std::vector<int> numbers_;         // by value id; -1: not defined yet
    std::vector<std::string> labels_;  // by value id; with names only
    std::unordered_set<std::string> used_labels_;
    int next_ = 0;
    Span last_span_;  // the last one printed
    std::unordered_map<Type, std::string> type_names_;
    std::unordered_map<Type, std::string> struct_labels_;
    std::unordered_set<std::string> used_struct_labels_;
    std::unordered_set<Type> seen_types_;
};

void Printer::constant(const Operation& operation) {
    const Type t = operation.results[0]->type;
    std::vector<Scalar> scalars;
    append_leaves(t, scalars);
    const std::vector<Number>& numbers = operation.numbers;
    if (t.is_scalar() && numbers.size() == 1) {
        append_number(out_, numbers[0], scalars[0]);
        return;
    }
    bool all_same = t.is_numeric_aggregate() && numbers.size() > 1;
    for (const Number& number : numbers) all_same = all_same && same_bits(number, numbers[0]);
    out_ += all_same ? "splat(" : "(";
    for (std::size_t i = 0; i < (all_same ? 1 : numbers.size()); ++i) {
        if (i) out_ += ", ";
        append_number(out_, numbers[i], i < scalars.size() ? scalars[i] : Scalar::i64);
    }
    out_ += ')';
}

void Printer::plain(const Operation& operation) {
    out_ += op_name(operation.op);
    const OpInfo& row = op_info(operation.op);
    const std::span<Value* const> operands(operation.operands);
    if (row.form != OpForm::listed) out_ += ' ';
    switch (row.form) {
        case OpForm::listed:
            if (!operands.empty()) out_ += ' ';
            uses(operands);
            break;
        case OpForm::number:
            constant(operation);
            break;
        case OpForm::path:
            uses(operands);
            static_path(operation.ints);
            break;
        case OpForm::path_then:
            uses(operands.first(1));
            static_path(operation.ints);
            out_ += ", ";
            uses(operands.subspan(1));
            break;
        case OpForm::shape:
            static_path(operation.ints);
            if (operation.unset) out_ += " unset";
            break;
        case OpForm::element:
        case OpForm::element_value:
        case OpForm::element_values: {
            const std::size_t behind = operands.size() - 1;
            const std::size_t indices = behind - std::min(values_behind_indices(operation.op), behind);
            indexed(operation, 1, indices, operands.subspan(1 + indices));
            break;
        }
        case OpForm::part_element:
            indexed(operation, 2, operands.size() - 2, operands.subspan(1, 1));
            break;
        case OpForm::call:
            symbol(operation.function ? operation.function->name : std::string_view());
            out_ += '(';
            uses(operands);
            out_ += ')';
            break;
        case OpForm::library:
            append_quoted(out_, operation.library->symbol);
            out_ += '(';
            uses(operands);
            out_ += operation.library->pure ? ") pure" : ")";
            library(*operation.library);
            if (operation.library->native) native(*operation.library->native);
            break;
        case OpForm::axis:
            for (const std::int64_t axis : operation.ints) integer(axis);
            break;
        case OpForm::message:
            append_quoted(out_, operation.text);
            for (const Value* operand : operands) {
                out_ += ", ";
                use(operand);
            }
            break;
        case OpForm::regions:
            break;  // structured()
    }
    if (row.type == ResultType::stated) {
        out_ += " : ";
        type(operation.results.empty() ? Type::none() : operation.results[0]->type);
    }
}

// "carry (%a = %init, ...)", with the space in front; empty if nothing is carried.
void Printer::carried(const Region& region, std::size_t first_argument, std::span<Value* const> inits) {
    if (inits.empty()) return;
    out_ += " carry (";
    for (std::size_t i = 0; i < inits.size(); ++i) {
        if (i) out_ += ", ";
        const Value* argument =
            first_argument + i < region.arguments.size() ? region.arguments[first_argument + i] : nullptr;
        if (argument) define(argument);
        use(argument);
        out_ += " = ";
        use(inits[i]);
    }
    out_ += ')';
}

void Printer::region(const Region& region, int depth) {
    out_ += '\n';
    for (const Operation* operation : region.operations) {
        // A final yield without operands is implicit.
        if (operation == region.operations.back() && operation->op == Op::yield && operation->operands.empty())
            continue;
        line(*operation, depth + 1);
    }
    indent(depth);
    out_ += '}';
}

void Printer::structured(const Operation& operation, int depth) {
    out_ += op_name(operation.op);
    const std::span<Value* const> operands(operation.operands);
    switch (operation.op) {
        case Op::if_: {
            out_ += ' ';
            uses(operands);
            if (operation.likely) out_ += " likely";
            out_ += " {";
            print_location(operation.span);
            region(operation.body(0), depth);
            if (operation.regions.size() < 2) break;
            const Region& other = operation.body(1);
            const bool empty = other.operations.size() == 1 && other.terminator()->op == Op::yield &&
                               other.terminator()->operands.empty();
            if (!empty) {
                out_ += " else {";
                region(other, depth);
            }
            break;
        }
        case Op::for_:
            out_ += ' ';
            if (!operation.body().arguments.empty()) define(operation.body().arguments[0]);
            use(operation.body().arguments.empty() ? nullptr : operation.body().arguments[0]);
            out_ += " = ";
            use(operands.size() > 0 ? operands[0] : nullptr);
            out_ += " to ";
            use(operands.size() > 1 ? operands[1] : nullptr);
            out_ += " step ";
            use(operands.size() > 2 ? operands[2] : nullptr);
            if (operands.size() > 3) carried(operation.body(), 1, operands.subspan(3));
            if (operation.guarded) out_ += " guarded";
            out_ += " {";
            print_location(operation.span);
            region(operation.body(), depth);
            break;
        case Op::while_:
            carried(operation.body(0), 0, operands);
            out_ += " {";
            print_location(operation.span);
            region(operation.body(0), depth);
            if (operation.regions.size() < 2) break;
            out_ += " do";
            for (std::size_t i = 0; i < operation.body(1).arguments.size(); ++i) {
                define(operation.body(1).arguments[i]);
                out_ += i ? ", " : " (";
                use(operation.body(1).arguments[i]);
            }
            if (!operation.body(1).arguments.empty()) out_ += ')';
            out_ += " {";
            region(operation.body(1), depth);
            break;
        // tile.generate [4, 8] (%i, %j) : tile<f32, 4x8> {
        case Op::tile_generate:
        case Op::tile_each:
        case Op::tile_reduce: {
            if (operation.op == Op::tile_reduce) {
                out_ += ' ';
                uses(operands);
            } else {
                out_ += " [";
                for (std::size_t i = 0; i < operation.ints.size(); ++i) {
                    if (i) out_ += ", ";
                    integer(operation.ints[i]);
                }
                out_ += ']';
            }
            out_ += " (";
            const std::vector<Value*>& arguments = operation.body().arguments;
            for (Value* argument : arguments) define(argument);
            uses(arguments);
            out_ += ')';
            if (operation.op == Op::tile_generate) {
                out_ += " : ";
                type(operation.results.empty() ? Type::none() : operation.results[0]->type);
            }
            out_ += " {";
            print_location(operation.span);
            region(operation.body(), depth);
            break;
        }
        default:
            break;
    }
    out_ += '\n';
}

}  // namespace

std::string print(const Function& function, bool names) {
    Printer printer(names);
    printer.declare_structs(function);
    printer.function(function);
    return printer.take();
}

std::string print(const Module& module, bool names) {
    Printer printer(names);
    for (const auto& function : module.functions) printer.declare_structs(*function);
    for (const auto& function : module.functions) {
        printer.blank_line();
        printer.function(*function);
    }
    return printer.take();
}

}  // namespace weft::ir

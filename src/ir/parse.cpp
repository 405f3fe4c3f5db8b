// Reads the text form that print.cpp writes; the grammar is in docs/ir.md. Result types follow from the operands by the
// rules of typing.h. Operations are appended as they are read, so a value must be defined before its uses, as scoping
// demands anyway; functions may be called before their definition.
#include <bit>
#include <charconv>
#include <limits>
#include <map>
#include <unordered_map>

#include "ir/ir.h"
#include "ir/text.h"
#include "ir/tokens.h"
#include "ir/typing.h"
#include "support/error.h"

namespace weft::ir {
namespace {

class Parser {
public:
    explicit Parser(std::string_view text)
        : text_(text), tokens_(tokenize(text)), module_(std::make_unique<Module>()) {}

    std::unique_ptr<Module> module() {
        // Structs and signatures first, then the bodies, so that calls find functions that come later.
        std::vector<std::pair<Function*, std::size_t>> bodies;
        while (peek().kind != Token::Kind::end) {
            if (accept_word("struct")) {
                structure();
            } else {
                Function* function = signature();
                bodies.emplace_back(function, at_);
                skip_body();
            }
        }
        for (const auto& [to, name] : custom_) {
            *to = module_->find(name->text);
            if (!*to) fail(*name, "there is no function '" + name->text + "'");
        }
        for (const auto& [function, start] : bodies) {
            at_ = start;
            body(*function);
        }
        return std::move(module_);
    }

private:
    // ---- tokens ----

    const Token& peek(std::size_t ahead = 0) const { return tokens_[std::min(at_ + ahead, tokens_.size() - 1)]; }
    const Token& next() {
        const Token& token = peek();
        if (at_ + 1 < tokens_.size()) ++at_;
        return token;
    }
    [[noreturn]] void fail(const Token& at, const std::string& message) const { fail_at(at.line, at.column, message); }
    [[noreturn]] void expected(const std::string& what) const {
        fail(peek(), "expected " + what + ", found " + describe(peek()));
    }

    bool is(char punctuation) const { return peek().kind == Token::Kind::punctuation && peek().text[0] == punctuation; }
    bool accept(char punctuation) {
        if (!is(punctuation)) return false;
        next();
        return true;
    }
    void expect(char punctuation) {
        if (!accept(punctuation)) expected(std::string("'") + punctuation + "'");
    }
    bool is_word(std::string_view word) const { return peek().kind == Token::Kind::word && peek().text == word; }
    bool accept_word(std::string_view word) {
        if (!is_word(word)) return false;
        next();
        return true;
    }
    void expect_word(std::string_view word) {
        if (!accept_word(word)) expected("'" + std::string(word) + "'");
    }
    const Token& expect_kind(Token::Kind kind, const char* what) {
        if (peek().kind != kind) expected(what);
        return next();
    }
    std::int64_t integer() {
        const Token& token = expect_kind(Token::Kind::number, "a whole number");
        std::int64_t value = 0;
        const char* end = token.text.data() + token.text.size();
        const auto [stop, error] = std::from_chars(token.text.data(), end, value);
        if (error != std::errc() || stop != end) fail(token, "expected a whole number, found '" + token.text + "'");
        return value;
    }

    // ---- types ----

    Type type() {
        const Token& first = expect_kind(Token::Kind::word, "a type");
        std::size_t end = first.end;
        if (first.text == "struct") {
            end = expect_kind(Token::Kind::symbol, "a struct name").end;
        } else if (is('<')) {
            int depth = 0;
            do {
                if (is('<')) ++depth;
                if (is('>')) --depth;
                if (peek().kind == Token::Kind::end) expected("'>'");
                end = next().end;
            } while (depth > 0);
        }
        const std::string_view spelled = text_.substr(first.begin, end - first.begin);
        const std::optional<Type> found = parse_ir_type(spelled, [this](std::string_view name) -> std::optional<Type> {
            const auto known = structs_.find(std::string(name));
            return known == structs_.end() ? std::nullopt : std::optional(known->second);
        });
        if (!found) fail(first, "'" + std::string(spelled) + "' is no type");
        return *found;
    }

    // struct @label = "name" "key" { field: type, ... }
    void structure() {
        const std::string label = expect_kind(Token::Kind::symbol, "a struct name").text;
        expect('=');
        const std::string name = expect_kind(Token::Kind::string, "the struct's name in quotes").text;
        const std::string key = expect_kind(Token::Kind::string, "the struct's key in quotes").text;
        expect('{');
        std::vector<Type::Field> fields;
        while (!is('}')) {
            if (!fields.empty()) expect(',');
            if (peek().kind != Token::Kind::word && peek().kind != Token::Kind::string) expected("a field name");
            std::string field = next().text;
            expect(':');
            fields.push_back({std::move(field), type()});
        }
        expect('}');
        structs_.insert_or_assign(label, Type::structure(name, key, std::move(fields)));
    }

    // ---- functions ----

    // kernel @name(%a: type, ...) [-> type] [tid rank]
    Function* signature() {
        const bool is_kernel = is_word("kernel");
        if (!is_kernel && !is_word("func")) expected("'kernel', 'func' or 'struct'");
        last_span_ = {};
        const Span span = span_of(next());
        const Token& name = expect_kind(Token::Kind::symbol, "a function name");
        if (module_->find(name.text)) fail(name, "there are two functions '" + name.text + "'");
        Function* function = module_->add(name.text);
        function->is_kernel = is_kernel;
        function->span = span;
        function_ = function;
        std::unordered_map<std::string, Value*>& values = values_[function];
        expect('(');
        while (!is(')')) {
            if (!function->parameters().empty()) expect(',');
            const Token& parameter = expect_kind(Token::Kind::value, "a parameter");
            expect(':');
            Value* value = function->add_argument(&function->body, type());
            bind(values, parameter, value);
            if (accept_word("copy"))
                function->implicit_parameters.push_back({ImplicitParameter::Kind::copy, static_cast<int>(integer())});
            if (accept_word("returned"))
                function->implicit_parameters.push_back(
                    {ImplicitParameter::Kind::returned, static_cast<int>(integer())});
            if (accept_word("log"))
                function->implicit_parameters.push_back({ImplicitParameter::Kind::log, static_cast<int>(integer())});
            if (accept_word("order"))
                function->implicit_parameters.push_back({ImplicitParameter::Kind::order, static_cast<int>(integer())});
            if (accept_word("sorted"))
                function->implicit_parameters.push_back({ImplicitParameter::Kind::sorted, static_cast<int>(integer())});
            if (accept_word("number"))
                function->implicit_parameters.push_back({ImplicitParameter::Kind::number, static_cast<int>(integer())});
            if (accept_word("after"))
                function->implicit_parameters.push_back({ImplicitParameter::Kind::after, static_cast<int>(integer())});
        }
        expect(')');
        if (accept('-')) {
            expect('>');
            function->result = type();
        }
        const auto custom = [&](const char* word, Function*& to) {
            if (accept_word(word)) custom_.emplace_back(&to, &expect_kind(Token::Kind::symbol, "a function name"));
        };
        custom("gradient", function->gradient);
        custom("replay", function->replay);
        custom("reverse", function->reverse_of);
        function->sees_after = accept_word("after");
        function->is_adjoint = accept_word("adjoint");
        if (accept_word("tid")) function->tid_rank = static_cast<int>(integer());
        while (accept_word("uncontended")) function->uncontended_parameters.push_back(static_cast<int>(integer()));
        return function;
    }

    // The words after the operands of a library function.
    void read_library(LibraryFunction& function) {
        const auto numbers = [&](const char* word, std::vector<int>& operands) {
            while (accept_word(word)) operands.push_back(static_cast<int>(integer()));
        };
        if (accept_word("lanes")) function.form = LibraryFunction::Form::lanes;
        if (accept_word("masked")) function.form = LibraryFunction::Form::masked;
        function.is_uniform = !accept_word("varying");
        numbers("reads", function.reads);
        numbers("writes", function.writes);
        if (accept_word("adjoint")) function.adjoint = expect_kind(Token::Kind::string, "a symbol in quotes").text;
        if (accept_word("tangent")) function.tangent = expect_kind(Token::Kind::string, "a symbol in quotes").text;
    }

    std::shared_ptr<const NativeSnippet> native(const std::string& name) {
        auto snippet = std::make_shared<NativeSnippet>();
        expect('(');
        std::string text = expect_kind(Token::Kind::string, "a text in quotes").text;
        while (accept(',')) {
            snippet->parameters.push_back(std::move(text));
            text = expect_kind(Token::Kind::string, "a text in quotes").text;
        }
        expect(')');
        snippet->source = snippet_source(name, text);
        return snippet;
    }

    void skip_body() {
        if (!is('{')) expected("'{'");
        int depth = 0;
        do {
            if (is('{')) ++depth;
            if (is('}')) --depth;
            if (peek().kind == Token::Kind::end) expected("'}'");
            next();
        } while (depth > 0);
    }

    void body(Function& function) {
        function_ = &function;
        current_ = &values_[&function];
        last_span_ = function.span;
        region(function.body);
    }

    // ---- values ----

    // "%s" and "%s.12" are called s; "%12" has no name.
    void bind(std::unordered_map<std::string, Value*>& values, const Token& token, Value* value) {
        if (!values.emplace(token.text, value).second) fail(token, "%" + token.text + " is defined twice");
        const std::string name = token.text.substr(0, token.text.find('.'));
        if (weft::ir::is_word(name)) value->name = name;
    }
    void define(const Token& token, Value* value) { bind(*current_, token, value); }

    Value* use() {
        const Token& token = expect_kind(Token::Kind::value, "a value");
        const auto found = current_->find(token.text);
        if (found == current_->end()) fail(token, "%" + token.text + " is not defined above");
        return found->second;
    }
    void uses(std::vector<Value*>& out) {
        do out.push_back(use());
        while (accept(','));
    }
    void uses_until(char closing, std::vector<Value*>& out) {
        while (!is(closing)) {
            if (!out.empty() && out.size() > uses_start_) expect(',');
            out.push_back(use());
        }
        expect(closing);
    }

    Number number(Scalar scalar) {
        const Token token = next();
        const bool has_bits = token.text == "nan" && peek(1).kind == Token::Kind::number && accept(':');
        if (has_bits && info(scalar).is_float()) return nan_of(expect_kind(Token::Kind::number, "the bits of a NaN"));
        return number_of(token, scalar);
    }

    // ---- operations ----

    // The span at `token`: the place that its line states, or else the last one stated.
    Span span_of(const Token& token) {
        if (token.location.empty()) return last_span_;
        const std::size_t colon = token.location.rfind(':');
        const std::string path = token.location.substr(0, colon);
        auto found = sources_.find(path);
        if (found == sources_.end()) {
            auto source = std::make_shared<Source>();
            source->path = path;
            found = sources_.emplace(path, source.get()).first;
            module_->sources.push_back(std::move(source));
        }
        int line = 0;
        std::from_chars(token.location.data() + colon + 1, token.location.data() + token.location.size(), line);
        last_span_ = Span{found->second, line, 0, 0};
        return last_span_;
    }

    void append(Region& region, Operation* operation) {
        operation->parent = &region;
        region.operations.push_back(operation);
    }

    // { operation... }; a region that does not end in a terminator ends in a yield of nothing.
    void region(Region& region) {
        expect('{');
        while (!is('}')) operation(region);
        expect('}');
        const Operation* end = region.terminator();
        const bool ended = end && (end->op == Op::yield || end->op == Op::return_);
        if (!ended && region.owner) append(region, function_->new_operation(Op::yield, last_span_));
    }

    void operation(Region& region) {
        const Token first = peek();
        const Span span = span_of(first);
        std::vector<Token> results;
        if (first.kind == Token::Kind::value) {
            do results.push_back(expect_kind(Token::Kind::value, "a result"));
            while (accept(','));
            expect('=');
        }
        const Token& name = expect_kind(Token::Kind::word, "an operation");
        const std::optional<Op> op = parse_op(name.text);
        if (!op) fail(name, "there is no operation '" + name.text + "'");
        Operation* operation = function_->new_operation(*op, span);
        std::vector<Type> types;
        switch (*op) {
            case Op::if_:
                types = if_(*operation);
                break;
            case Op::for_:
                types = for_(*operation);
                break;
            case Op::while_:
                types = while_(*operation);
                break;
            case Op::tile_generate:
            case Op::tile_each:
            case Op::tile_reduce:
                types = tile(*operation);
                break;
            default:
                types = plain(*operation, name);
        }
        append(region, operation);
        if (types.size() != results.size()) {
            fail(first, "'" + name.text + "' gives " + std::to_string(types.size()) + " results, " +
                            std::to_string(results.size()) + " are named");
        }
        for (std::size_t i = 0; i < types.size(); ++i) define(results[i], function_->add_result(operation, types[i]));
    }

    std::vector<Type> plain(Operation& operation, const Token& name) {
        operands(operation);
        Type stated;
        if (op_info(operation.op).type == ResultType::stated && operation.op != Op::constant) {
            expect(':');
            stated = type();
        } else if (operation.op == Op::constant) {
            stated = constant(operation);
        }
        try {
            const Type result = result_type(operation, stated);
            return result.is_none() ? std::vector<Type>{} : std::vector<Type>{result};
        } catch (const TypeMistake& mistake) {
            fail(name, "'" + name.text + "' " + mistake.what());
        }
    }

    // number : scalar | (number, ...) : type | splat(number) : type. The type comes last, so it is read first.
    Type constant(Operation& operation) {
        const std::size_t start = at_;
        while (!is(':') || peek(1).kind == Token::Kind::number) {  // the ':' of nan:0x... is not it
            if (peek().kind == Token::Kind::end || is('}')) expected("':' and the type of the constant");
            next();
        }
        expect(':');
        const Type stated = type();
        const std::size_t end = at_;
        at_ = start;

        std::vector<Scalar> scalars;
        try {
            append_leaves(stated, scalars);
        } catch (const TypeMistake& mistake) {
            fail(peek(), mistake.what());
        }
        if (accept_word("splat")) {
            expect('(');
            operation.numbers.assign(scalars.size(), number(stated.scalar()));
            expect(')');
        } else if (accept('(')) {
            while (!is(')')) {
                if (!operation.numbers.empty()) expect(',');
                if (operation.numbers.size() == scalars.size()) {
                    fail(peek(), "a constant of type '" + stated.ir_name() + "' has " + std::to_string(scalars.size()) +
                                     " numbers");
                }
                operation.numbers.push_back(number(scalars[operation.numbers.size()]));
            }
            expect(')');
        } else {
            if (!stated.is_scalar()) expected("'('");
            operation.numbers.push_back(number(stated.scalar()));
        }
        if (!is(':')) expected("':'");
        at_ = end;
        return stated;
    }

    void static_path(Operation& operation) {
        expect('[');
        while (!is(']')) {
            if (!operation.ints.empty()) expect(',');
            operation.ints.push_back(integer());
        }
        expect(']');
    }

    // %a[indices...]
    void indexed(Operation& operation) {
        operation.operands.push_back(use());
        expect('[');
        uses_start_ = operation.operands.size();
        uses_until(']', operation.operands);
    }

    void operands(Operation& operation) {
        switch (op_info(operation.op).form) {
            case OpForm::listed:
                if (peek().kind == Token::Kind::value && !starts_operation()) uses(operation.operands);
                break;
            case OpForm::path:
                operation.operands.push_back(use());
                static_path(operation);
                break;
            case OpForm::path_then:
                operation.operands.push_back(use());
                static_path(operation);
                expect(',');
                uses(operation.operands);
                break;
            case OpForm::shape:
                static_path(operation);
                operation.unset = accept_word("unset");
                break;
            case OpForm::element:
            case OpForm::element_value:
            case OpForm::element_values:
                indexed(operation);
                if (accept(',')) uses(operation.operands);
                break;
            case OpForm::part_element: {
                indexed(operation);
                expect(',');
                Value* part = use();
                operation.operands.insert(operation.operands.begin() + 1, part);
                break;
            }
            case OpForm::call: {
                const Token& callee = expect_kind(Token::Kind::symbol, "a function");
                operation.function = module_->find(callee.text);
                if (!operation.function) fail(callee, "there is no function '" + callee.text + "'");
                arguments(operation);
                break;
            }
            case OpForm::library: {
                auto library = std::make_shared<LibraryFunction>();
                library->symbol = expect_kind(Token::Kind::string, "a symbol in quotes").text;
                arguments(operation);
                library->pure = accept_word("pure");
                read_library(*library);
                if (accept_word("native")) library->native = native(library->symbol);
                operation.library = std::move(library);
                break;
            }
            case OpForm::axis:
                operation.ints.push_back(integer());
                break;
            case OpForm::message:
                operation.text = expect_kind(Token::Kind::string, "a text in quotes").text;
                if (accept(',')) uses(operation.operands);
                break;
            case OpForm::number:   // constant(), which has to know the type first
            case OpForm::regions:  // if_(), for_(), while_(), tile()
                break;
        }
    }

    // An operation ends with its line, which tokens do not show: "%a = ..." and "%a, %b = ..." start the next one.
    bool starts_operation() const {
        std::size_t ahead = 0;
        while (peek(ahead).kind == Token::Kind::value) {
            const Token& after = peek(ahead + 1);
            if (after.kind != Token::Kind::punctuation) return false;
            if (after.text == "=") return true;
            if (after.text != ",") return false;
            ahead += 2;
        }
        return false;
    }

    void arguments(Operation& operation) {
        expect('(');
        uses_start_ = operation.operands.size();
        uses_until(')', operation.operands);
    }

    std::vector<Type> yielded(const Region& region) const {
        std::vector<Type> types;
        for (const Value* value : region.terminator()->operands) types.push_back(value->type);
        return types;
    }

    std::vector<Type> if_(Operation& operation) {
        operation.operands.push_back(use());
        operation.likely = accept_word("likely");
        region(*function_->new_region(&operation));
        Region* other = function_->new_region(&operation);
        if (accept_word("else")) {
            region(*other);
        } else {
            append(*other, function_->new_operation(Op::yield, last_span_));
        }
        return yielded(operation.body(0));
    }

    // [carry (%a = %init, ...)]
    void carried(Operation& operation, Region& region) {
        if (!accept_word("carry")) return;
        expect('(');
        std::vector<Token> names;
        std::vector<Value*> inits;
        while (!is(')')) {
            if (!names.empty()) expect(',');
            names.push_back(expect_kind(Token::Kind::value, "a carried value"));
            expect('=');
            inits.push_back(use());
        }
        expect(')');
        for (std::size_t i = 0; i < names.size(); ++i) {
            define(names[i], function_->add_argument(&region, inits[i]->type));
            operation.operands.push_back(inits[i]);
        }
    }

    std::vector<Type> for_(Operation& operation) {
        const Token counter = expect_kind(Token::Kind::value, "the loop's counter");
        expect('=');
        operation.operands.push_back(use());
        expect_word("to");
        operation.operands.push_back(use());
        expect_word("step");
        operation.operands.push_back(use());
        Region* body = function_->new_region(&operation);
        define(counter, function_->add_argument(body, operation.operands[0]->type));
        carried(operation, *body);
        operation.guarded = accept_word("guarded");
        region(*body);
        return carried_types(operation, 3);
    }

    std::vector<Type> while_(Operation& operation) {
        Region* condition = function_->new_region(&operation);
        carried(operation, *condition);
        region(*condition);
        expect_word("do");
        Region* body = function_->new_region(&operation);
        if (accept('(')) {
            while (!is(')')) {
                if (!body->arguments.empty()) expect(',');
                const Token name = expect_kind(Token::Kind::value, "a carried value");
                const std::size_t i = body->arguments.size();
                if (i >= operation.operands.size()) fail(name, "the while carries " + std::to_string(i) + " values");
                define(name, function_->add_argument(body, operation.operands[i]->type));
            }
            expect(')');
        }
        region(*body);
        return carried_types(operation, 0);
    }

    // [4, 8] (%i, %j) : tile<f32, 4x8> { ... }
    std::vector<Type> tile(Operation& operation) {
        std::vector<Type> arguments, results;
        if (operation.op == Op::tile_reduce) {
            operation.operands.push_back(use());
            const Type whole = operation.operands[0]->type;
            if (!whole.is_tile()) expected("a tile");
            arguments = {whole.element(), whole.element()};
            results = {whole.element()};
        } else {
            static_path(operation);
            arguments.assign(operation.ints.size(), i32_type());
        }
        Region* body = function_->new_region(&operation);
        expect('(');
        for (std::size_t i = 0; i < arguments.size(); ++i) {
            if (i) expect(',');
            const Token name = expect_kind(Token::Kind::value, "an argument of the region");
            define(name, function_->add_argument(body, arguments[i]));
        }
        expect(')');
        if (operation.op == Op::tile_generate) {
            expect(':');
            results = {type()};
        }
        region(*body);
        return results;
    }

    static std::vector<Type> carried_types(const Operation& operation, std::size_t first) {
        std::vector<Type> types;
        for (std::size_t i = first; i < operation.operands.size(); ++i) types.push_back(operation.operands[i]->type);
        return types;
    }

    std::string_view text_;
    std::vector<Token> tokens_;
    std::size_t at_ = 0;
    std::vector<std::pair<Function**, const Token*>> custom_;  // to be set to the function of that name
    std::unique_ptr<Module> module_;
    Function* function_ = nullptr;
    std::unordered_map<Function*, std::unordered_map<std::string, Value*>> values_;
    std::unordered_map<std::string, Value*>* current_ = nullptr;
    std::map<std::string, Type> structs_;
    std::map<std::string, const Source*> sources_;
    Span last_span_;
    std::size_t uses_start_ = 0;
};

}  // namespace

std::unique_ptr<Module> parse(std::string_view text) {
    std::unique_ptr<Module> module = Parser(text).module();
    try {
        verify(*module);
    } catch (const InternalError& error) {
        // The text is a user's input here, so a violation is a usage error.
        const std::string what = error.what();
        throw UsageError("parse()", what.substr(0, what.find("\nhelp:")), ErrorCategory::syntax);
    }
    return module;
}

}  // namespace weft::ir

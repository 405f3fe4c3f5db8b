// Valid random modules, for properties that must hold of every program: a printed module is read back, and
// passes leave modules that verify.
#pragma once

#include <limits>
#include <random>

#include "ir/builder.h"

namespace weft::ir {

class RandomModule {
public:
    explicit RandomModule(unsigned seed) : random_(seed) {}

    std::unique_ptr<Module> make() {
        auto module = std::make_unique<Module>();
        auto source = std::make_shared<Source>();
        source->path = "some where/file.py";
        source_ = source.get();
        module->sources.push_back(source);
        particle_ = Type::structure("Particle", "test",
                                    {{"x", Type::vector(Scalar::f32, 3)}, {"m", f64_type()}, {"n", i32_type()}});
        twin_ = Type::structure("Particle", "other", {{"flag", bool_type()}});

        Function* callee = module->add("helper<f32>");
        callee->add_argument(&callee->body, f32_type(), "a");
        callee->result = Type::tuple({f32_type(), i32_type()});
        fill(*callee, 12);
        Builder end(*callee, callee->body);
        end.return_({value(f32_type(), end), value(i32_type(), end)});

        callee_ = callee;
        Function* kernel = module->add("kernel");
        kernel->is_kernel = true;
        kernel->tid_rank = 2;
        kernel->span = {source_, 3, 0, 0};
        for (Type type : {Type::array(f32_type(), 1), Type::array(f32_type(), 2), Type::array(i32_type(), 1),
                          Type::array(particle_, 1), particle_, twin_, f32_type(), i32_type()}) {
            kernel->add_argument(&kernel->body, type, pick(4) ? "p" : "");
        }
        fill(*kernel, 60);
        Builder(*kernel, kernel->body).return_({});
        return module;
    }

private:
    unsigned pick(unsigned n) { return static_cast<unsigned>(random_() % n); }

    void fill(Function& function, int operations) {
        values_ = function.parameters();
        Builder builder(function, function.body);
        budget_ = operations;
        region(builder, 0);
    }

    // Some value of that type: one in scope, or a new constant.
    Value* value(Type type, Builder& builder) {
        std::vector<Value*> fitting;
        for (Value* candidate : values_)
            if (candidate->type == type) fitting.push_back(candidate);
        if (!fitting.empty() && pick(4)) return fitting[pick(static_cast<unsigned>(fitting.size()))];
        if (type.is_array()) return fitting.empty() ? nullptr : fitting[0];
        return constant(type, builder);
    }

    Value* constant(Type type, Builder& builder) {
        if (!type.is_scalar() && !type.is_numeric_aggregate()) return builder.zero(type);
        static constexpr double kReals[] = {0.0, -0.0, 1.0, -1.0, 0.1, 1e30, 1e-40, 2.0};
        static constexpr std::int64_t kIntegers[] = {0, 1, -1, 2, 7, 100};
        std::vector<Number> numbers;
        for (int i = 0; i < type.components(); ++i) {
            if (info(type.scalar()).is_float()) {
                const unsigned special = pick(40);
                numbers.push_back(Number::real(special == 0   ? std::numeric_limits<double>::infinity()
                                               : special == 1 ? -std::numeric_limits<double>::quiet_NaN()
                                                              : kReals[pick(8)]));
            } else {
                numbers.push_back(Number::integer(type.is_bool() ? pick(2) : kIntegers[pick(6)]));
            }
        }
        return builder.constant(type, std::move(numbers));
    }

    Type small_type() {
        switch (pick(7)) {
            case 0:
                return i32_type();
            case 1:
                return bool_type();
            case 2:
                return f64_type();
            case 3:
                return Type::vector(Scalar::f32, 3);
            case 4:
                return Type::matrix(Scalar::f32, 2, 3);
            default:
                return f32_type();
        }
    }

    void define(Value* made) {
        if (!made) return;
        static const char* const kNames[] = {"", "", "s", "x", "vx", "s", "naïve", "_t1"};
        made->name = kNames[pick(8)];
        values_.push_back(made);
    }

    void region(Builder& builder, int depth) {
        const unsigned count = 3 + pick(8);
        for (unsigned i = 0; i < count && budget_ > 0; ++i) {
            --budget_;
            if (pick(3) == 0) builder.span = pick(5) ? Span{source_, static_cast<int>(4 + pick(9)), 2, 5} : Span{};
            one(builder, depth);
        }
    }

    void one(Builder& builder, int depth) {
        const Type vec = Type::vector(Scalar::f32, 3), mat = Type::matrix(Scalar::f32, 2, 3);
        const auto get = [&](Type type) { return value(type, builder); };
        Value* const array = get(Type::array(f32_type(), 1));
        switch (pick(26)) {
            case 0:
                define(builder.binary(Op::add, get(f32_type()), get(f32_type())));
                break;
            case 1:
                define(builder.binary(Op::mul, get(vec), get(vec)));
                break;
            case 2:
                define(builder.binary(pick(2) ? Op::div : Op::shr, get(i32_type()), get(i32_type())));
                break;
            case 3:
                define(builder.unary(pick(2) ? Op::neg : Op::sqrt, get(f32_type())));
                break;
            case 4:
                define(builder.compare(Op::cmp_lt, get(f32_type()), get(f32_type())));
                break;
            case 5:
                define(builder.binary(Op::and_, get(bool_type()), get(bool_type())));
                break;
            case 6:
                define(builder.unary(Op::invert, get(bool_type())));
                break;
            case 7: {
                const Type type = small_type();
                define(builder.select(get(bool_type()), get(type), get(type)));
                break;
            }
            case 8:
                define(builder.cast(get(f32_type()), pick(2) ? Scalar::i32 : Scalar::f64));
                break;
            case 9:
                define(builder.make(vec, {get(f32_type()), get(f32_type()), get(f32_type())}));
                break;
            case 10:
                define(builder.extract(get(vec), {pick(3)}));
                break;
            case 11:
                define(builder.insert(get(vec), get(f32_type()), {pick(3)}));
                break;
            case 12:
                define(builder.extract(get(mat), {pick(2), pick(3)}));
                break;
            case 13:
                define(builder.extract_at(get(mat), {get(i32_type()), get(i32_type())}));
                break;
            case 14:
                define(builder.insert_at(get(vec), get(f32_type()), {get(i32_type())}));
                break;
            case 15:
                define(builder.splat(mat, get(f32_type())));
                break;
            case 16:
                if (array) define(builder.load(array, {get(i32_type())}));
                break;
            case 17:
                if (array) builder.store(array, {get(i32_type())}, get(f32_type()));
                break;
            case 18:
                if (array) define(builder.atomic(Op::atomic_add, array, {get(i32_type())}, {get(f32_type())}));
                break;
            case 19:
                if (Value* deep = get(Type::array(f32_type(), 2))) define(builder.view(deep, {get(i32_type())}));
                break;
            case 20:
                if (Value* structs = get(Type::array(particle_, 1))) {
                    define(builder.member(structs, 0));
                    define(builder.load(structs, {get(i32_type())}));
                }
                break;
            case 21: {
                Value* const particle = get(particle_);
                define(builder.insert(particle, get(f32_type()), {0, 1}));
                define(builder.extract(particle, {0}));
                break;
            }
            case 22:
                other(builder);
                break;
            case 23:
            case 24:
            case 25:
                if (depth < 3) control(builder, depth);
                break;
        }
    }

    void other(Builder& builder) {
        const auto get = [&](Type type) { return value(type, builder); };
        switch (pick(6)) {
            case 0:
                builder.print("value \"%d\" of 100%%\n", {get(i32_type())});
                break;
            case 1:
                builder.assert_(get(bool_type()), "must \\ hold\x01");
                break;
            case 2:
                if (builder.function().is_kernel) define(builder.tid(static_cast<int>(pick(2))));
                break;
            case 3: {
                LibraryFunction library{"weft_noise", pick(2) == 0};
                if (pick(2) == 0) {
                    auto native = std::make_shared<NativeSnippet>();
                    native->parameters = {"x"};
                    native->source = snippet_source("weft_noise", "\n  return \"\\\" ? x : 0;  // \x01\n");
                    library = {"weft_noise", false, std::move(native)};
                }
                define(builder.call_library(std::make_shared<const LibraryFunction>(library), f32_type(),
                                            {get(f32_type())}));
                break;
            }
            case 4:
                if (callee_ && builder.function().is_kernel) {
                    Value* both = builder.call(callee_, {get(f32_type())});
                    define(both);
                    define(builder.extract(both, {1}));
                }
                break;
            default:
                define(builder.fma(get(f32_type()), get(f32_type()), get(f32_type())));
                define(builder.matmul(get(Type::matrix(Scalar::f32, 2, 3)), get(Type::vector(Scalar::f32, 3))));
        }
    }

    void fill_and_yield(Builder& builder, Region& into, const std::vector<Type>& types, int depth) {
        const Builder::Inside inside(builder, into);
        const std::size_t in_scope = values_.size();
        for (Value* argument : into.arguments) define(argument);
        region(builder, depth + 1);
        std::vector<Value*> yielded;
        for (Type type : types) yielded.push_back(value(type, builder));
        builder.yield(std::move(yielded));
        values_.resize(in_scope);
    }

    void control(Builder& builder, int depth) {
        std::vector<Type> types;
        for (unsigned i = pick(3); i > 0; --i) types.push_back(small_type());
        Operation* made = nullptr;
        switch (pick(3)) {
            case 0:
                made = builder.if_(value(bool_type(), builder), types);
                made->likely = pick(2);
                for (Region* arm : made->regions) fill_and_yield(builder, *arm, types, depth);
                break;
            case 1: {
                const bool guarded = pick(2);
                if (guarded) types.push_back(bool_type());
                std::vector<Value*> inits;
                for (Type type : types) inits.push_back(value(type, builder));
                Value* lo = value(i32_type(), builder);
                Value* hi = value(i32_type(), builder);
                made = builder.for_(lo, hi, value(i32_type(), builder), inits, guarded);
                fill_and_yield(builder, made->body(), types, depth);
                break;
            }
            default: {
                std::vector<Value*> inits;
                for (Type type : types) inits.push_back(value(type, builder));
                made = builder.while_(inits);
                fill_and_yield(builder, made->body(0), {bool_type()}, depth);
                fill_and_yield(builder, made->body(1), types, depth);
            }
        }
        for (Value* result : made->results) define(result);
    }

    std::mt19937 random_;
    const Source* source_ = nullptr;
    Type particle_, twin_;
    Function* callee_ = nullptr;
    std::vector<Value*> values_;
    int budget_ = 0;
};

}  // namespace weft::ir

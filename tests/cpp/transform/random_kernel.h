// Random kernels that can be run: scalars and vectors, two arrays, branches, bounded loops, calls. Built to give the
// simplifier something to do: few distinct values, many constants.
#pragma once

#include <random>

#include "ir/builder.h"

namespace weft::transform {

class RandomKernel {
public:
    // `chooses`: components of vectors are chosen at run time, branches and loops carry vectors.
    explicit RandomKernel(unsigned seed, bool chooses = false) : random_(seed), chooses_(chooses) {}

    std::unique_ptr<ir::Module> make() {
        auto module = std::make_unique<ir::Module>();
        callee_ = module->add("callee");
        callee_->result = Type::tuple({f32_type(), i32_type()});
        values_ = {callee_->add_argument(&callee_->body, f32_type()), callee_->add_argument(&callee_->body, i32_type()),
                   callee_->add_argument(&callee_->body, array_)};
        ir::Function* const callee = callee_;
        callee_ = nullptr;
        {
            ir::Builder builder(*callee, callee->body);
            region(builder, 2);
            builder.return_({value(f32_type(), builder), value(i32_type(), builder)});
        }
        callee_ = callee;

        ir::Function* kernel = module->add("kernel");
        kernel->is_kernel = true;
        kernel->tid_rank = 1;
        values_ = {kernel->add_argument(&kernel->body, array_), kernel->add_argument(&kernel->body, array_),
                   kernel->add_argument(&kernel->body, f32_type()), kernel->add_argument(&kernel->body, i32_type())};
        ir::Builder builder(*kernel, kernel->body);
        values_.push_back(builder.tid(0));
        for (int i = 0; i < 6; ++i) region(builder, 0);
        // Half of the programs show all they have computed, so that every mistake is seen; the others leave much
        // unused.
        const bool shows_all = pick(2);
        for (ir::Value* shown : std::vector<ir::Value*>(values_)) {
            if (shown->type.is_vector()) shown = builder.extract(shown, {pick(3)});
            if (shown->type.is_scalar() && (shows_all || pick(20) == 0)) builder.print("%g\n", {shown});
        }
        builder.return_({});
        return module;
    }

private:
    unsigned pick(unsigned n) { return static_cast<unsigned>(random_() % n); }

    ir::Value* value(Type type, ir::Builder& builder) {
        std::vector<ir::Value*> fitting;
        for (ir::Value* candidate : values_)
            if (candidate->type == type) fitting.push_back(candidate);
        if (!fitting.empty() && (type.is_array() || pick(3)))
            return fitting[pick(static_cast<unsigned>(fitting.size()))];
        static constexpr double kReals[] = {0.0, -0.0, 1.0, -1.0, 2.0, 0.5};
        static constexpr std::int64_t kIntegers[] = {0, 1, -1, 2, 3};
        std::vector<Number> numbers;
        for (int i = 0; i < type.components(); ++i) {
            if (info(type.scalar()).is_float()) {
                numbers.push_back(Number::real(kReals[pick(6)]));
            } else {
                numbers.push_back(Number::integer(type.is_bool() ? pick(2) : kIntegers[pick(5)]));
            }
        }
        return builder.constant(type, std::move(numbers));
    }

    // Mostly the first of two elements, so that accesses meet.
    ir::Value* index(ir::Builder& builder) {
        return pick(4) ? builder.integer(pick(3) == 0) : value(i32_type(), builder);
    }

    void region(ir::Builder& builder, int depth) {
        for (unsigned i = 4 + pick(6); i > 0; --i) one(builder, depth);
    }

    void one(ir::Builder& builder, int depth) {
        using ir::Op;
        const auto get = [&](Type type) { return value(type, builder); };
        const auto define = [&](ir::Value* made) { values_.push_back(made); };
        static constexpr Op kFloat[] = {Op::add, Op::sub, Op::mul, Op::min, Op::max, Op::div};
        static constexpr Op kInt[] = {Op::add, Op::sub, Op::mul, Op::and_, Op::or_, Op::xor_,
                                      Op::min, Op::max, Op::shl, Op::shr,  Op::div};
        static constexpr Op kBool[] = {Op::and_, Op::or_, Op::xor_};
        static constexpr Op kCompare[] = {Op::cmp_lt, Op::cmp_le, Op::cmp_gt, Op::cmp_ge, Op::cmp_eq, Op::cmp_ne};
        if (chooses_ && pick(4) == 0) {
            ir::Value* const at = value(i32_type(), builder);
            switch (pick(5)) {
                case 0:
                    return define(builder.extract_at(get(vec_), {at}));
                case 1:
                    return define(builder.select(get(bool_type()), get(vec_), get(vec_)));
                default:
                    return define(builder.insert_at(get(vec_), get(f32_type()), {at}));
            }
        }
        switch (pick(20)) {
            case 0:
            case 1:
                define(builder.binary(kFloat[pick(6)], get(f32_type()), get(f32_type())));
                break;
            case 2:
                define(builder.binary(kFloat[pick(6)], get(vec_), get(vec_)));
                break;
            case 3:
            case 4:
                define(builder.binary(kInt[pick(11)], get(i32_type()), get(i32_type())));
                break;
            case 5:
                define(builder.binary(kBool[pick(3)], get(bool_type()), get(bool_type())));
                break;
            case 6:
                define(builder.unary(pick(2) ? Op::neg : Op::abs, get(pick(2) ? f32_type() : i32_type())));
                break;
            case 7:
                define(builder.unary(Op::invert, get(pick(2) ? bool_type() : i32_type())));
                break;
            case 8: {
                const Type type = pick(2) ? f32_type() : i32_type();
                define(builder.compare(kCompare[pick(6)], get(type), get(type)));
                break;
            }
            case 9: {
                const Type type = pick(2) ? f32_type() : bool_type();
                define(builder.select(get(bool_type()), get(type), get(type)));
                break;
            }
            case 10:
                define(builder.cast(get(pick(2) ? bool_type() : i32_type()), pick(2) ? Scalar::f32 : Scalar::i32));
                break;
            case 11:
                define(builder.make(vec_, {get(f32_type()), get(f32_type()), get(f32_type())}));
                break;
            case 12:
                define(builder.extract(get(vec_), {pick(3)}));
                break;
            case 13:
                define(builder.insert(get(vec_), get(f32_type()), {pick(3)}));
                break;
            case 14:
                define(builder.load(get(array_), {index(builder)}));
                break;
            case 15:
                builder.store(get(array_), {index(builder)}, get(f32_type()));
                break;
            case 16:
                if (pick(2)) {
                    define(builder.atomic(Op::atomic_add, get(array_), {index(builder)}, {get(f32_type())}));
                } else if (callee_) {
                    ir::Value* const both = builder.call(callee_, {get(f32_type()), get(i32_type()), get(array_)});
                    define(builder.extract(both, {0}));
                    define(builder.extract(both, {1}));
                }
                break;
            default:
                if (depth < 3) control(builder, depth);
        }
    }

    void fill(ir::Builder& builder, ir::Region& into, const std::vector<Type>& types, int depth) {
        const ir::Builder::Inside inside(builder, into);
        const std::size_t in_scope = values_.size();
        for (ir::Value* argument : into.arguments) values_.push_back(argument);
        region(builder, depth + 1);
        std::vector<ir::Value*> yielded;
        for (std::size_t i = 0; i < types.size(); ++i) {
            // Often what came in goes out again.
            const std::size_t carried = into.arguments.size() - std::min(into.arguments.size(), types.size()) + i;
            const bool again =
                carried < into.arguments.size() && into.arguments[carried]->type == types[i] && pick(3) == 0;
            yielded.push_back(again ? into.arguments[carried] : value(types[i], builder));
        }
        builder.yield(std::move(yielded));
        values_.resize(in_scope);
    }

    void control(ir::Builder& builder, int depth) {
        std::vector<Type> types;
        for (unsigned i = pick(4); i > 0; --i)
            types.push_back(chooses_ && pick(2) ? vec_ : pick(2) ? f32_type() : pick(2) ? i32_type() : bool_type());
        const auto inits = [&] {
            std::vector<ir::Value*> made;
            for (Type type : types) made.push_back(value(type, builder));
            return made;
        };
        ir::Operation* made = nullptr;
        switch (pick(3)) {
            case 0:
                made = builder.if_(value(bool_type(), builder), types);
                for (ir::Region* arm : made->regions) fill(builder, *arm, types, depth);
                break;
            case 1: {
                const bool guarded = pick(2);
                if (guarded) types.push_back(bool_type());
                ir::Value* lo = builder.integer(pick(3));
                ir::Value* hi = pick(2) ? builder.integer(pick(4))
                                        : builder.binary(ir::Op::and_, value(i32_type(), builder), builder.integer(3));
                ir::Value* step = builder.integer(pick(4) ? 1 : pick(2) ? 2 : -1);
                std::vector<ir::Value*> start = inits();
                made = builder.for_(lo, hi, step, std::move(start), guarded);
                fill(builder, made->body(), types, depth);
                break;
            }
            default: {
                // A counter carried last bounds the loop.
                types.push_back(i32_type());
                std::vector<ir::Value*> start = inits();
                start.back() = builder.integer(pick(4));
                made = builder.while_(std::move(start));
                {
                    const ir::Builder::Inside inside(builder, made->body(0));
                    ir::Value* const more =
                        builder.compare(ir::Op::cmp_gt, made->body(0).arguments.back(), builder.integer(0));
                    builder.yield({pick(2) ? more : builder.binary(ir::Op::and_, more, value(bool_type(), builder))});
                }
                fill(builder, made->body(1), types, depth);
                ir::Region& body = made->body(1);
                ir::Operation* const yield = body.operations.back();
                body.operations.pop_back();
                const ir::Builder::Inside inside(builder, body);
                yield->operands.back() = builder.binary(ir::Op::sub, body.arguments.back(), builder.integer(1));
                body.operations.push_back(yield);
            }
        }
        for (ir::Value* result : made->results) values_.push_back(result);
    }

    std::mt19937 random_;
    const bool chooses_;
    const Type array_ = Type::array(f32_type(), 1);
    const Type vec_ = Type::vector(Scalar::f32, 3);
    ir::Function* callee_ = nullptr;
    std::vector<ir::Value*> values_;
};

}  // namespace weft::transform

#include "weft/tape.h"

#include <cstdio>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "embed/guarded.h"
#include "embed/recorded.h"
#include "program/tape/recorded_write.h"
#include "program/tape/stopped_gradients.h"
#include "program/tape/tape_start.h"

namespace weft {

namespace {

using program::Variable;

const std::shared_ptr<Variable>& known(const std::shared_ptr<Variable>& array, const char* api, const char* what) {
    if (!array) throw UsageError(api, std::string(what) + " is no array: it was made by Array()");
    return array;
}

// A copy by the host, or a write of other numbers: keeps the arrays alive.
class Write final : public program::RecordedWrite {
public:
    Write(std::shared_ptr<Variable> to, std::shared_ptr<Variable> from)
        : RecordedWrite(*to, from.get()), to_(std::move(to)), from_(std::move(from)) {}

private:
    std::shared_ptr<Variable> to_, from_;
};

// Sets all numbers of a gradient to 1.
void fill_with_ones(const runtime::Array& gradient) {
    const Type dtype = gradient.dtype;
    const Scalar scalar = dtype.scalar();
    std::vector<std::byte> ones(static_cast<std::size_t>(dtype.size_bytes()));
    for (int i = 0; i < dtype.components(); ++i)
        write_scalar(scalar, convert(Number::real(1.0), Scalar::f64, scalar), ones.data() + i * info(scalar).bytes());
    runtime::fill(gradient, ones.data());
}

}  // namespace

struct Tape::Implementation {
    program::Tape tape;
    std::set<std::string> told;      // warnings
    std::set<std::size_t> searched;  // may_stop_gradients() of recordings that were searched

    void backward(std::span<const Variable* const> seeds) {
        tape.memory().check_versions();
        if (const std::size_t mark = program::may_stop_gradients(tape); mark != 0 && searched.insert(mark).second)
            tell_of_stops(seeds);
        for (std::size_t i = tape.entries().size(); i-- > 0;) tape.backward(i, {});
    }

    void tell_of_stops(std::span<const Variable* const> seeds) {
        for (const std::string& text : program::stopped_gradients(tape, seeds)) {
            if (!told.insert(text).second) continue;
            const std::string line = "weft: warning: Tape::backward(): " + text + "\n";
            std::fwrite(line.data(), 1, line.size(), stderr);
        }
    }

    // Gives the array a gradient if it has none, and sets it in all records of the same array.
    void give_gradient(Variable& of) {
        if (of.requires_grad) return;
        const std::vector<const Variable*> others = program::standing_for(of, tape);
        make_gradient(of);
        for (const Variable* one : others) {
            // Records refer to arrays of the program, which may be changed.
            auto& other = const_cast<Variable&>(*one);
            other.gradient = of.gradient;
            other.requires_grad = true;
            other.array.view.grad = of.array.view.grad;
        }
    }
};

Tape::Tape() : implementation_(std::make_unique<Implementation>()) {}
Tape::Tape(Tape&&) noexcept = default;
Tape& Tape::operator=(Tape&&) noexcept = default;
Tape::~Tape() = default;

// ---- recording ----

void Tape::launch(const Kernel& kernel, std::span<const std::int64_t> dim, std::span<const Argument> arguments) {
    guarded([&] {
        program::Tape& tape = implementation_->tape;
        const auto entry = std::make_shared<Recorded>(Access::implementation(kernel), dim, arguments);
        tape.record(entry);
        try {
            entry->launch(arguments);
        } catch (...) {
            tape.forget_last();
            throw;
        }
    });
}

void Tape::copy(const Array& to, const Array& source) {
    guarded([&] {
        program::Tape& tape = implementation_->tape;
        tape.record(std::make_shared<Write>(known(Access::variable(to), "Tape::copy()", "the destination"),
                                            known(Access::variable(source), "Tape::copy()", "the source")));
        try {
            to.copy_from(source);
        } catch (...) {
            tape.forget_last();
            throw;
        }
    });
}

void Tape::overwrite(const Array& to) {
    guarded([&] {
        implementation_->tape.record(
            std::make_shared<Write>(known(Access::variable(to), "Tape::overwrite()", "the argument"), nullptr));
        count_write(to);
    });
}

// ---- backward pass ----

void Tape::backward() {
    guarded([&] {
        const Variable* const loss = program::implied_loss(implementation_->tape);
        if (loss) {
            implementation_->give_gradient(const_cast<Variable&>(*loss));
            fill_with_ones(gradient_of(*loss));
        }
        if (loss)
            implementation_->backward({&loss, 1});
        else
            implementation_->backward({});
    });
}

void Tape::backward(const Array& loss) {
    guarded([&] {
        const std::shared_ptr<Variable> variable = known(Access::variable(loss), "Tape::backward()", "the loss");
        program::check_loss(*variable);
        fill_with_ones(gradient_of(*variable));
        const Variable* const seed = variable.get();
        implementation_->backward({&seed, 1});
    });
}

void Tape::backward(std::span<const std::pair<Array, Array>> gradients) {
    guarded([&] {
        std::vector<const Variable*> seeds;
        for (const auto& [array, gradient] : gradients) {
            const auto of = known(Access::variable(array), "Tape::backward()", "an array with a gradient");
            const auto seed = known(Access::variable(gradient), "Tape::backward()", "a gradient");
            program::check_gradient(*of, seed->array);
            implementation_->give_gradient(*of);
            runtime::copy(gradient_of(*of), seed->array);
            seeds.push_back(of.get());
        }
        implementation_->backward(seeds);
    });
}

void Tape::zero() {
    guarded([&] {
        std::unordered_set<const void*> seen;
        for (const auto& entry : implementation_->tape.entries())
            entry->for_each_array([&](const Variable& one, bool) {
                if (one.requires_grad && seen.insert(&one).second) runtime::zero(gradient_of(one));
            });
    });
}

void Tape::reset() {
    zero();
    implementation_->tape.clear();
}

std::size_t Tape::size() const { return implementation_->tape.entries().size(); }

}  // namespace weft

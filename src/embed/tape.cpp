#include "weft/tape.h"

#include <cstdio>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "embed/guarded.h"
#include "embed/recorded.h"
#include "program/tape/backward.h"
#include "program/tape/recorded_write.h"
#include "program/tape/stopped_gradients.h"
#include "runtime/array_copies.h"

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

}  // namespace

struct Tape::Implementation final : program::BackwardHost {
    program::Tape tape;
    std::set<std::string> told;      // warnings
    std::set<std::size_t> searched;  // may_stop_gradients() of recordings that were searched

    void begin(const Variable*, std::span<const Variable* const> seeds) override {
        const std::size_t mark = program::may_stop_gradients(tape);
        if (mark == 0 || !searched.insert(mark).second) return;
        for (const std::string& text : program::stopped_gradients(tape, seeds)) {
            if (!told.insert(text).second) continue;
            const std::string line = "weft: warning: Tape::backward(): " + text + "\n";
            std::fwrite(line.data(), 1, line.size(), stderr);
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
        const auto& implementation = Access::implementation(kernel);
        const GivenArguments given(*implementation, dim, arguments);
        const auto entry = std::make_shared<Recorded>(implementation, given);
        tape.record(entry);
        try {
            implementation->launch(dim, given.block, arguments, entry->returned);
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
    guarded([&] { program::backward(implementation_->tape, *implementation_, nullptr, {}); });
}

void Tape::backward(const Array& loss) {
    guarded([&] {
        const std::shared_ptr<Variable> variable = known(Access::variable(loss), "Tape::backward()", "the loss");
        program::backward(implementation_->tape, *implementation_, variable.get(), {});
    });
}

void Tape::backward(std::span<const std::pair<Array, Array>> gradients) {
    guarded([&] {
        std::vector<program::Seed> seeds;
        for (const auto& [array, gradient] : gradients)
            seeds.push_back({known(Access::variable(array), "Tape::backward()", "an array with a gradient").get(),
                             known(Access::variable(gradient), "Tape::backward()", "a gradient")->array});
        program::backward(implementation_->tape, *implementation_, nullptr, seeds);
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

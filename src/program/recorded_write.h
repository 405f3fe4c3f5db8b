// What the host writes to an array, on a tape: a copy, whose gradient goes back to what was copied, or numbers from
// elsewhere, which take the gradient away.
#pragma once

#include "program/tape_entry.h"

namespace weft::program {

// The backward pass of a copy of all elements of `from` to those of `to`, in the same order: adds the gradient of `to`
// to that of `from`, where it has one, and leaves zeros. The two may share memory, and lie on two devices. Their dtypes
// are made of the same numbers. Throws UsageError where `to` shows an element several times, of which one was kept and
// nobody knows which.
void reverse_copy(const Variable& to, const Variable* from);

// Who makes one keeps both arrays alive.
class RecordedWrite : public TapeEntry {
public:
    // `from` is null for numbers from elsewhere.
    RecordedWrite(const Variable& to, const Variable* from) : to_(&to), from_(from) {}

    void record(TapeMemory& memory) override { memory.write(*to_, /*counts=*/true); }
    void backward(const Backward&) override { reverse_copy(*to_, from_); }
    std::vector<Group> written() const override { return {{to_}}; }
    void for_each_array(const Visit& visit) const override;
    std::string text() const override;
    std::vector<Use> uses() const override;
    std::string use_text(const Use& use) const override;

    const Variable& to() const { return *to_; }
    const Variable* from() const { return from_; }

private:
    const Variable *to_, *from_;
};

}  // namespace weft::program

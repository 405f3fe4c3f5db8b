// A write of the host to an array, on a tape: a copy, whose gradient goes back to its source, or numbers from
// elsewhere, which end the gradient.
#pragma once

#include "program/tape/tape_entry.h"

namespace weft::program {

// The backward pass of a copy of all elements of `from` to those of `to`, in the same order. Adds the gradient of `to`
// to that of `from`, if it has one, and leaves zeros. The two may share memory, and lie on two devices. Their dtypes
// consist of the same numbers. Throws UsageError if `to` shows an element several times: the element that was kept is
// then unknown.
void reverse_copy(const Variable& to, const Variable* from);

// The maker keeps both arrays alive.
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

// The launches on a tape.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "program/tape/differentiable_kernel.h"
#include "program/tape/referenced_objects.h"
#include "program/tape/tape_entry.h"

namespace weft::program {

struct Extents {
    Extents() = default;
    explicit Extents(std::span<const std::int64_t> given) : count(given.size()) {
        std::copy(given.begin(), given.end(), extents.begin());
    }
    std::span<const std::int64_t> span() const { return {extents.data(), count}; }

    std::array<std::int64_t, kMaxDims> extents;
    std::size_t count = 0;
};

// One launch: its packed arguments, and the contents that its adjoint reads, as they were then. The maker keeps alive
// all that the arguments point to.
class RecordedLaunch : public TapeEntry {
public:
    // Arrays inside the elements of an argument, at any depth.
    struct Nested {
        std::size_t parameter;
        Group arrays;
        std::vector<SavedPrimalPtr> primals;  // saved primals of these; empty if the adjoint does not read them
    };

    // An array of the block.
    struct Argument {
        const Variable* array = nullptr;  // null for None and for memory that no array owns
        SavedPrimalPtr before;            // null if the adjoint does not read it
    };

    // `arrays` are those of the block, in the order of KernelSignature::arrays.
    RecordedLaunch(const DifferentiableKernel& kernel, runtime::Device& device, const std::byte* block,
                   std::span<const std::int64_t> dims, std::vector<Argument> arrays);

    // Finds its needs. To be called once, before the tape records it. `facts` and `block` as for launch_needs().
    // `is_seen`: the launch will be made with the arrays for atomic results that are opened here; otherwise it must not
    // need any.
    void find_needs(const KernelFacts& facts, const std::byte* block, bool is_seen);
    // The blocks of the launch on a GPU, for its adjoint; otherwise the device chooses.
    void set_blocks(const runtime::Grid& grid) {
        blocks_ = {.block_dim = grid.block_dim, .max_blocks = grid.max_blocks};
    }
    void set_nested(std::vector<Nested> nested) { nested_ = std::move(nested); }
    void record(TapeMemory& memory) override;

    // Throws UsageError if arrays have got gradients since, and contents that the adjoint reads for these are gone.
    void backward(const Backward& backward) override;

    bool is_launch() const override { return true; }
    const std::string* left_out() const override { return needs_->is_left_out ? &signature_->name : nullptr; }
    int overwritten(const Variable& array) const override;
    std::vector<Group> written() const override;
    void for_each_array(const Visit& visit) const override;
    std::string text() const override;
    std::vector<Use> uses() const override;
    bool has_derivative(const Use& written, const Use& read) const override;
    std::string use_text(const Use& use) const override;
    const void* kind() const override { return needs_.get(); }

    const KernelSignature& signature() const { return *signature_; }
    runtime::Device& device() const { return *device_; }
    const Extents& dims() const { return dims_; }
    const LaunchNeeds& needs() const { return *needs_; }
    std::span<const Argument> arrays() const { return arrays_; }
    const ReferencedObjects* objects() const { return objects_.get(); }
    // The objects that its adjoint finds by ids, in a capture as each launch of the graph finds them; null if it finds
    // none. Throws UsageError if they cannot be known.
    std::shared_ptr<runtime::spatial::PreviousObjects> previous_objects(
        const TapeMemory& memory, const ReferencedObjects::WithGradient& with_gradient) const;
    // To be called after an adjoint that was given these objects.
    void check_found(const runtime::spatial::PreviousObjectsPtr& previous) const;
    const std::vector<Nested>& nested() const { return nested_; }
    // Its arguments, with the present gradients of arrays.
    std::vector<std::byte> block() const;
    std::span<const std::pair<std::size_t, SavedPrimalPtr>> after() const { return after_; }  // by parameter
    std::vector<runtime::Array> returned;                                                     // results of its atomics

protected:
    // If elements of arguments lead to arrays whose contents were saved: replaces the arrays in the adjoint's blocks
    // `before` and `after` by copies whose elements lead to the saved contents. The result owns the copies.
    virtual std::vector<runtime::BufferPtr> show_nested(std::byte*, std::byte*) const { return {}; }
    // As ReferencedObjects::ArraysOf.
    virtual Group arrays_of_object(std::uint64_t) { return {}; }

private:
    void find_objects(const KernelFacts& facts, const std::byte* block);
    void refuse_written_objects() const;
    bool reads_objects() const;
    [[noreturn]] void throw_written_objects() const;
    bool any_nested_kept() const;
    bool run_adjoint(const TapeMemory& memory, std::span<const SuppliedGradient> supplied);
    bool has_new_gradients() const;
    void catch_up(TapeMemory& memory, const Group& written_after);
    std::size_t parameter_at(std::size_t index) const;
    void watch_gradients(NanCheck& check, const std::byte* block) const;
    DifferentiableKernel::Launch launch(const std::byte* block) const { return {*device_, dims_.span(), block}; }
    [[noreturn]] void too_late(const std::string& why) const;
    std::shared_ptr<const LaunchNeeds> needs_with(const KernelFacts& facts, const std::byte* block) const;
    bool is_written(std::size_t array) const {
        return arrays_[array].array && needs_->writes[static_cast<std::size_t>(signature_->arrays[array].parameter)];
    }

    const DifferentiableKernel* kernel_;
    const KernelSignature* signature_;  // the kernel's
    runtime::Device* device_;
    bool is_seen_ = false;
    Extents dims_;
    runtime::Grid blocks_;  // its block_dim and max_blocks alone
    // The arguments that are no arrays, one behind the other; all arguments if some array is memory that no array
    // object owns.
    std::vector<std::byte> numbers_;
    std::vector<Argument> arrays_;
    std::shared_ptr<const LaunchNeeds> needs_;
    std::vector<std::pair<std::size_t, SavedPrimalPtr>> after_;
    std::vector<Nested> nested_;
    std::unique_ptr<ReferencedObjects> objects_;  // null if the kernel finds none
};

}  // namespace weft::program

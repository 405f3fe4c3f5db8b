// Objects that a launch finds by ids: meshes, BVHs, hash grids and volumes. A tape keeps them as the launch saw them,
// so that the adjoint, which runs queries again, finds the same.
//
// Trees and volumes are kept by snapshots (runtime/handles.h). The arrays of a mesh are the user's: contents
// that later launches overwrite are saved as those of any array (tape_memory.h). The adjoint finds a descriptor with
// these contents and with the gradients that the arrays have by then.
//
// Ids stand among the numbers of the arguments or in arrays, which are read here. All existing objects count as found
// if an array is long, or if ids may come from elsewhere: an array in an element of an array, a constant in the kernel.
// An id that a kernel computes is noticed when the adjoint asks for it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "program/kernel/signature.h"
#include "program/tape/tape_memory.h"
#include "runtime/handles.h"

namespace weft::program {

class ReferencedObjects {
public:
    // The arrays of an object in the order of its descriptor; null for one that it has not. The callee keeps them
    // alive.
    using ArraysOf = std::function<std::vector<const Variable*>(std::uint64_t id)>;

    // Whether launches of a kernel find objects.
    static bool finds_any(const KernelFacts& facts) {
        return std::ranges::any_of(facts.effects, &ParameterEffects::names_objects);
    }

    // The objects that a launch of the kernel with this block may find. `arrays` are those of the block, in the order
    // of KernelSignature::arrays; null for None and for memory that no array owns.
    ReferencedObjects(const KernelSignature& kernel, const KernelFacts& facts, const std::byte* block,
                      std::span<const Variable* const> arrays, const ArraysOf& arrays_of);

    // Whether one of their arrays has a gradient.
    bool have_gradients() const;
    // An array of one of them that shares memory with this one, or null.
    const Variable* overlapping(const Variable& array) const;
    void for_each_array(const std::function<void(const Variable&)>& visit) const;

    // Snapshots them as they are now. If the host records its work, the graph does it again. Waits for the device first
    // if a volume is among them.
    void keep(runtime::Device& device);
    bool are_kept() const { return is_kept_; }
    // Whether no object has changed since the ids were read.
    bool are_unchanged() const { return changes_ == runtime::spatial::changes(); }
    // Records the arrays' contents on the tape, with the launch. `reads`: the adjoint reads their arrays.
    void record(TapeMemory& memory, bool reads);
    // For an adjoint that turned out later to read them: save(array) gives the saved primal of contents that are still
    // there.
    void read_late(const std::function<SavedPrimalPtr(const Variable&)>& save);
    void add_primals(std::vector<SavedPrimalPtr*>& to);

    // The objects for the adjoint. Gradients that it adds arrive at the arrays for which with_gradient(array) holds.
    // Null if memory was written outside the tape since then; `reads` says whether the contents of their arrays matter.
    using WithGradient = std::function<bool(const Variable&)>;
    std::shared_ptr<runtime::spatial::PreviousObjects> previous(const TapeMemory& memory, bool reads,
                                                                const WithGradient& with_gradient) const;
    // The same for an adjoint that is captured: it finds each object as the launch does when the graph runs. Throws
    // UsageError if the capture has built an object again since, so that this is not known.
    std::shared_ptr<runtime::spatial::PreviousObjects> previous_in_graph(const TapeMemory& memory, bool reads,
                                                                         const WithGradient& with_gradient,
                                                                         const std::string& kernel) const;
    // For forward mode, after keep(): meshes get tangents that consist of those of their arrays. tangent(array) is null
    // for an array that does not move. If `to` is of a graph, each launch of it finds them as it finds the meshes.
    using TangentOf = std::function<const ArrayView*(const Variable&)>;
    void add_tangents(const TangentOf& tangent, runtime::spatial::PreviousObjects& to) const;
    // Visits each array with its saved primal; null if it has none.
    void for_each_primal(const std::function<void(const Variable&, const SavedPrimalPtr&)>& visit) const;

private:
    struct ObjectArray {
        const Variable* array = nullptr;
        SavedPrimalPtr primal;
        std::uint64_t writes_of_others = 0;  // when the launch was recorded
    };
    struct ReferencedObject {  // or none: such an id finds nothing in the adjoint either
        std::uint64_t id;
        runtime::spatial::Snapshot kept;
        std::shared_ptr<runtime::spatial::Snapshot> kept_in_graph;  // of the host
        std::vector<ObjectArray> parts;
    };

    // The arrays of a mesh for its adjoint; empty for other objects. None if they were written outside of the tape.
    static std::optional<std::vector<ArrayView>> views(const ReferencedObject& of, const TapeMemory& memory, bool reads,
                                                       const WithGradient& with_gradient);
    static bool is_as_it_was(const ObjectArray& part, const TapeMemory& memory);
    // The object with these arrays, by the id `as`, for an adjoint that is captured.
    static void add_in_graph(const ReferencedObject& found, std::vector<ArrayView> arrays, std::uint64_t as,
                             runtime::spatial::PreviousObjects& to);

    std::vector<ReferencedObject> found_;
    std::vector<ObjectArray> ids_;  // arrays of ids
    std::uint64_t changes_ = 0;
    bool is_kept_ = false;
};

}  // namespace weft::program

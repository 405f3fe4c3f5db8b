#include "program/kernel/volume_writes.h"

#include <cstring>
#include <utility>
#include <vector>

#include "program/kernel/object_ids.h"
#include "runtime/handles.h"
#include "runtime/recording.h"

namespace weft::program {

namespace {

// Whether it writes to objects that a parameter names, or that it finds by a constant. Memory that is written otherwise
// holds no ids, and ir::effects() has then marked all parameters.
bool stores(const ParameterEffects& effects, Type type) {
    const bool writes_memory = effects.writes_itself || effects.writes_within;
    return effects.names_objects && effects.writes && (may_hold_ids(type) || !writes_memory);
}

class VolumeWritingKernel final : public runtime::LoadedKernel {
public:
    VolumeWritingKernel(std::shared_ptr<const runtime::Executable> executable, const runtime::LoadedKernel& kernel,
                        const KernelFacts& facts)
        : LoadedKernel(kernel.description(), kernel.cost_ns(), kernel.is_ordered(), kernel.may_be_long()),
          executable_(std::move(executable)),
          kernel_(kernel) {
        for (std::size_t i = 0; i < facts.effects.size(); ++i)
            if (stores(facts.effects[i], facts.parameter_types[i]))
                ids_.push_back(facts.parameter_types[i] == u64_type() ? facts.layout.offsets[i] : kUnknown);
    }

    void prepare(runtime::Device& device) const override { kernel_.prepare(device); }
    bool launch(std::span<const std::byte> arguments, const runtime::Grid& grid, const runtime::LaunchOptions& options,
                runtime::Stream& stream) const override {
        // A device that captures by itself runs the launch without this code, which precedes each launch of the graph.
        // The copy for snapshots of the capture is a part of the graph.
        runtime::Recording* const recording = stream.recording();
        const std::shared_ptr<runtime::Stream> own(std::shared_ptr<runtime::Stream>(), &stream);
        const runtime::UseStream use(stream.device().geometry() ? own : nullptr);
        for (const std::int64_t offset : ids_) {
            std::uint64_t id = 0;
            if (offset != kUnknown) std::memcpy(&id, arguments.data() + offset, sizeof id);
            if (offset != kUnknown && id == 0) continue;
            runtime::spatial::keep_apart_in(recording, id);
        }
        return kernel_.launch(arguments, grid, options, stream);
    }
    void call(const std::byte* arguments, Fault& fault) const override { kernel_.call(arguments, fault); }

private:
    static constexpr std::int64_t kUnknown = -1;

    std::shared_ptr<const runtime::Executable> executable_;
    const runtime::LoadedKernel& kernel_;
    std::vector<std::int64_t> ids_;  // offsets of the ids among the arguments
};

}  // namespace

// A kernel that stores has no adjoint.
bool writes_volumes(const KernelFacts& facts) {
    for (std::size_t i = 0; i < facts.effects.size(); ++i)
        if (stores(facts.effects[i], facts.parameter_types[i])) return true;
    return false;
}

std::shared_ptr<const runtime::LoadedKernel> volume_writing_kernel(
    std::shared_ptr<const runtime::Executable> executable, const runtime::LoadedKernel& kernel,
    const KernelFacts& facts) {
    return std::make_shared<const VolumeWritingKernel>(std::move(executable), kernel, facts);
}

}  // namespace weft::program

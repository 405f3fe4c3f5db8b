#include "runtime/cuda/external_use.h"

#include <atomic>
#include <mutex>
#include <utility>

#include "support/error.h"

namespace weft::runtime {

using namespace cuda;

namespace {

// Never freed: the driver may release graphs when the process ends.
struct ExternalUses {
    std::mutex mutex;
    std::vector<std::weak_ptr<ExternalUse>> all;
    std::vector<std::shared_ptr<ExternalUse>> unused;
    std::atomic<bool> has_any{false};
};
ExternalUses& external_uses() {
    static ExternalUses& made = *new ExternalUses;
    return made;
}

}  // namespace

ExternalUse::~ExternalUse() {
    const CudaContext::Inside inside(device_, std::nothrow);
    if (!inside.is_inside()) return;
    for (const CUstream stream : gone) destroy_quietly(driver().cuStreamDestroy_v2, stream);
}

void ExternalUse::retain(const std::shared_ptr<ExternalUse>& use, CUgraph graph) {
    const Driver& d = driver();
    if (!d.cuUserObjectCreate || !d.cuGraphRetainUserObject)
        throw UsageError(
            "launch()",
            "the CUDA driver is too old to be captured by other libraries: expected one of CUDA 11.3 or later");
    const auto let_go = [](void* pointer) {
        auto* const kept = static_cast<std::shared_ptr<ExternalUse>*>(pointer);
        const std::lock_guard lock(external_uses().mutex);
        external_uses().unused.push_back(std::move(*kept));
        delete kept;
    };
    auto kept = std::make_unique<std::shared_ptr<ExternalUse>>(use);
    CUuserObject object = nullptr;
    use->device_.check(d.cuUserObjectCreate(&object, kept.get(), let_go, 1, kNoDestructorSync), "cuUserObjectCreate");
    kept.release();  // NOLINT(bugprone-unused-return-value): the object has it
    const CUresult result = d.cuGraphRetainUserObject(graph, object, 1, kMoveUserObject);
    if (result != kSuccess) d.cuUserObjectRelease(object, 1);
    use->device_.check(result, "cuGraphRetainUserObject");
    const std::lock_guard lock(external_uses().mutex);
    external_uses().all.push_back(use);
    external_uses().has_any = true;
}

void ExternalUse::free_unused() {
    if (!external_uses().has_any) return;
    std::vector<std::shared_ptr<ExternalUse>> unused;
    {
        const std::lock_guard lock(external_uses().mutex);
        unused.swap(external_uses().unused);
    }
}

void ExternalUse::collect(const CudaContext& device, ReportSource& source) {
    if (!external_uses().has_any) return;
    std::vector<std::shared_ptr<ExternalUse>> there;
    {
        const std::lock_guard lock(external_uses().mutex);
        std::erase_if(external_uses().all, [](const std::weak_ptr<ExternalUse>& each) { return each.expired(); });
        for (const std::weak_ptr<ExternalUse>& each : external_uses().all)
            if (std::shared_ptr<ExternalUse> use = each.lock(); use && &use->device_ == &device)
                there.push_back(std::move(use));
    }
    std::shared_ptr<LateFault> late;
    for (const std::shared_ptr<ExternalUse>& use : there)
        if (const std::shared_ptr<LateFault> found = use->reports->collect(source); found && !late) late = found;
    if (late) late->throw_fault();
    for (const std::shared_ptr<ExternalUse>& use : there)
        for (const NodePtr& node : use->nodes) {
            node->throw_fault();
            for (const auto& [branch, child] : node->children()) child->throw_fault();
        }
}

}  // namespace weft::runtime

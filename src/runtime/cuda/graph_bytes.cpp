// Bytes that the launches of a graph bring to the host: copies, and data that is checked afterwards.
#include "runtime/copy_plan.h"
#include "runtime/cuda/capture.h"
#include "support/error.h"

namespace weft::runtime {

namespace {

// Of work whose node is described by itself, with which it is put again.
class CheckNode final : public Node {
public:
    CheckNode(std::string name, std::shared_ptr<LeftBytes> left, std::function<void(const std::byte*)> check)
        : Node(std::move(name)), left_(std::move(left)), check_(std::move(check)) {}
    void run() override {}
    bool may_fail() const override { return true; }
    void throw_fault() override {
        if (left_->take()) check_(left_->data());
    }
    void enqueue_into(Stream&) override {}

private:
    std::shared_ptr<LeftBytes> left_;
    std::function<void(const std::byte*)> check_;
};

}  // namespace

// In the driver's words, a body of a condition may copy to pinned memory, and do nothing on the host.
std::shared_ptr<LeftBytes> CudaRecording::leave_bytes(const void* from, std::int64_t size_bytes, Stream& stream) {
    auto left = std::make_shared<LeftBytes>(size_bytes);
    static constexpr std::int64_t kMark = 1;
    const void* const mark = keep_bytes(&kMark, sizeof kMark);
    auto& queue = static_cast<CudaStream&>(stream);
    queue.put_to_host(left->data(), from, size_bytes);
    queue.put_to_host(left->mark(), mark, sizeof kMark);
    return left;
}

void CudaRecording::add_filled(const CopyPlan& plan, std::function<void()> bring) {
    filled_.push_back(plan.bytes_of(plan.to, &CopyPlan::Axis::to));
    if (bring) reports_->add(std::move(bring));
}

void CudaRecording::refuse_filled(const CopyPlan& plan) const {
    const auto [begin, end] = plan.bytes_of(plan.from, &CopyPlan::Axis::from);
    for (const auto& [filled_begin, filled_end] : filled_)
        if (begin < filled_end && filled_begin < end)
            throw UsageError("copy()",
                             "the array of the host is read while the graph is captured, and the graph fills it each "
                             "time that it runs. help: copy from the array on '" +
                                 cuda_.alias + "' that it is filled from, or take one without gaps in pinned memory");
}

void CudaRecording::add_check(std::string name, std::shared_ptr<LeftBytes> left,
                              std::function<void(const std::byte*)> check) {
    add(std::make_unique<CheckNode>(std::move(name), std::move(left), std::move(check)), {});
}

}  // namespace weft::runtime

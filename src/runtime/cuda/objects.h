// The table of ids in the memory of a CUDA device (devlib/cuda/objects.h). Launches look ids up there when they run, so
// an id is removed, and its object freed, when the device has no work left that was enqueued before.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "devlib/cuda/objects.h"
#include "runtime/cuda/memory.h"
#include "runtime/handles.h"

namespace weft::runtime {

class CudaDevice;
class Recording;

class CudaObjects final : public spatial::DeviceTable {
public:
    explicit CudaObjects(CudaDevice& device) : device_(device) {}

    Device& device() const override;
    void set(std::size_t slot, std::uint64_t id, const void* descriptor) override;
    void change(std::size_t slot, const void* descriptor) override;
    void remove(std::size_t slot, std::function<void()> done) override;

    // Pieces of the device's memory that the table takes.
    int allocations() const;
    // Gives them back. Precondition: the device has no work left and no objects.
    void close();

    // The table's address on the device, for launches (CudaLaunch::objects). It stays.
    const void* table();
    // A table with other meanings of ids, for one launch in this stream.
    std::unique_ptr<CudaMemory> table_with(const spatial::PreviousObjects& objects, Stream& stream);
    // After that launch was enqueued: the objects will read in its table whether an id was missed.
    void add_launch(const spatial::PreviousObjects& objects, std::unique_ptr<CudaMemory> table);
    // The address of a table for a launch that is captured. Before each launch of the graph, it gets the contents that
    // the ids have by then.
    const void* table_in_graph(const spatial::PreviousObjectsPtr& objects, Recording& recording);

private:
    void make_table();
    // Makes room for so many slots.
    void make_slots(std::size_t least);
    // Done when they return. They do not wait for the work of the device.
    void write(void* to, const void* from, std::int64_t size_bytes);
    // Zeroed.
    CudaMemory take(std::int64_t size_bytes);
    void show_header();
    void write_slot(std::size_t slot);
    // The header and the slots of a table at that address.
    std::vector<std::byte> table_bytes(const spatial::PreviousObjects& objects, const void* at);

    CudaDevice& device_;
    mutable std::mutex mutex_;
    std::shared_ptr<Stream> own_;            // for writes that wait for no other work
    std::vector<devlib::ObjectSlot> slots_;  // as on the device
    devlib::ObjectTable header_{};
    bool is_shown_ = true;                // the device has this header
    std::atomic<void*> memory_{nullptr};  // the header, and the descriptors of empty objects
};

}  // namespace weft::runtime

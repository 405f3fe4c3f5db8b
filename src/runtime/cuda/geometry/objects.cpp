#include "runtime/cuda/objects.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <utility>

#include "devlib/spatial/hash_grid.h"
#include "runtime/cuda/device.h"
#include "runtime/recording.h"
#include "support/error.h"
#include "types/objects.h"

namespace weft::runtime {

namespace {

constexpr std::size_t kFirstSlots = 1024;
constexpr std::int64_t kHeaderBytes = 64;  // the empty descriptor behind it is aligned
constexpr std::int64_t kTableBytes = kHeaderBytes + 2 * kMostDescriptorBytes;
static_assert(sizeof(devlib::ObjectTable) <= kHeaderBytes);
static_assert(devlib::kDescriptorBytes == kMostDescriptorBytes);

devlib::UInt64 address(const void* of) { return reinterpret_cast<std::uintptr_t>(of); }

std::int64_t table_size(const spatial::PreviousObjects& objects) {
    return 2 * kHeaderBytes + static_cast<std::int64_t>(objects.entries().size() * sizeof(devlib::ObjectSlot));
}

}  // namespace

Device& CudaObjects::device() const { return device_; }

void CudaObjects::write(void* to, const void* from, std::int64_t size_bytes) {
    const WithoutRecording without;
    auto& stream = static_cast<CudaStream&>(*own_);
    stream.put_from_host(to, from, size_bytes);
    stream.wait();
}

CudaMemory CudaObjects::take(std::int64_t size_bytes) {
    const WithoutRecording without;
    CudaMemory memory(device_, size_bytes, /*zeroed=*/true, *own_, "a mesh, grid or volume");
    own_->synchronize();
    return memory;
}

int CudaObjects::allocations() const {
    const std::lock_guard lock(mutex_);
    return (memory_ != nullptr ? 1 : 0) + (header_.slots != nullptr ? 1 : 0);
}

void CudaObjects::close() {
    const std::lock_guard lock(mutex_);
    if (memory_ == nullptr) return;
    if (header_.slots != nullptr)
        device_.free(const_cast<devlib::ObjectSlot*>(header_.slots),
                     static_cast<std::int64_t>(slots_.size() * sizeof(devlib::ObjectSlot)), *own_);
    device_.free(memory_.exchange(nullptr), kTableBytes, *own_);
    own_->synchronize();
    own_.reset();
    slots_.clear();
    header_ = {};
}

// Memory is taken without the lock: that may free objects, and run the program's own code.
void CudaObjects::make_table() {
    if (memory_ != nullptr) return;
    {
        const std::lock_guard lock(mutex_);
        if (!own_) own_ = device_.make_stream(0);
    }
    CudaMemory memory = take(kTableBytes);
    const std::lock_guard lock(mutex_);
    if (memory_ != nullptr) return;  // another thread was first
    header_.empty = address(memory.data()) + kHeaderBytes;
    // An empty hash grid has a grid of groups, too: itself.
    const devlib::UInt64 grid = header_.empty + devlib::kDescriptorBytes;
    write(reinterpret_cast<void*>(grid + offsetof(devlib::HashGridFields, grouped)), &grid, sizeof grid);
    write(memory.data(), &header_, sizeof header_);
    memory_ = memory.release();
}

// The pointer is written before the count, so that a launch that runs meanwhile reads within the former slots or these.
void CudaObjects::show_header() {
    if (is_shown_) return;
    write(memory_, &header_.slots, sizeof header_.slots);
    write(memory_, &header_, sizeof header_);
    is_shown_ = true;
}

// Running launches may read the former slots. If the device does not get the new header, it keeps them.
void CudaObjects::make_slots(std::size_t least) {
    make_table();
    const auto bytes_of = [](std::size_t count) {
        return static_cast<std::int64_t>(count * sizeof(devlib::ObjectSlot));
    };
    const std::size_t count = std::bit_ceil(std::max(least, kFirstSlots));
    {
        const std::lock_guard lock(mutex_);
        if (slots_.size() >= least) return show_header();
    }
    CudaMemory made = take(bytes_of(count));
    void* previous = nullptr;
    std::size_t previous_count = 0;
    {
        const std::lock_guard lock(mutex_);
        if (slots_.size() >= count) return show_header();
        std::vector<devlib::ObjectSlot> slots = slots_;
        slots.resize(count);
        write(made.data(), slots.data(), bytes_of(count));
        previous = const_cast<devlib::ObjectSlot*>(header_.slots);
        previous_count = std::exchange(slots_, std::move(slots)).size();
        header_.slots = static_cast<const devlib::ObjectSlot*>(made.release());
        header_.slot_count = static_cast<devlib::Int64>(count);
        is_shown_ = false;
        show_header();
    }
    if (previous == nullptr) return;
    free_when_idle(device_,
                   [this, previous, bytes = bytes_of(previous_count)] { device_.free(previous, bytes, *own_); });
}

void CudaObjects::write_slot(std::size_t slot) {
    write(const_cast<devlib::ObjectSlot*>(header_.slots) + slot, &slots_[slot], sizeof(devlib::ObjectSlot));
}

const void* CudaObjects::table() {
    make_table();
    return memory_;
}

void CudaObjects::set(std::size_t slot, std::uint64_t id, const void* descriptor) {
    make_slots(slot + 1);
    const std::lock_guard lock(mutex_);
    slots_[slot] = {id, address(descriptor)};
    write_slot(slot);
}

void CudaObjects::change(std::size_t slot, const void* descriptor) {
    const std::lock_guard lock(mutex_);
    slots_[slot].descriptor = address(descriptor);
    auto* const at = const_cast<devlib::ObjectSlot*>(header_.slots) + slot;
    device_.from_host(&at->descriptor, &slots_[slot].descriptor, sizeof at->descriptor, current_stream(device_));
}

// In two steps: work that is enqueued before the slot is free may still find the descriptor.
void CudaObjects::remove(std::size_t slot, std::function<void()> done) {
    free_when_idle(device_, [this, slot, done = std::move(done)] {
        try {
            const std::lock_guard lock(mutex_);
            slots_[slot] = {};
            write_slot(slot);
        } catch (const Error&) {
            // The device has failed: no kernel looks ids up any more, and the next wait reports the error.
        }
        free_when_idle(device_, done);
    });
}

std::vector<std::byte> CudaObjects::table_bytes(const spatial::PreviousObjects& objects, const void* at) {
    std::vector<devlib::ObjectSlot> previous;  // sorted by id, as the entries are
    for (const auto& entry : objects.entries()) {
        const bool is_here = entry.table == this || entry.descriptor == nullptr;
        previous.push_back({entry.id, is_here ? address(entry.descriptor) : 0});
    }
    devlib::ObjectTable table{};
    {
        const std::lock_guard lock(mutex_);
        table = header_;
    }
    const auto* const begin = static_cast<const std::byte*>(at);
    table.previous = reinterpret_cast<const devlib::ObjectSlot*>(begin + 2 * kHeaderBytes);
    table.previous_count = static_cast<devlib::Int32>(previous.size());
    table.are_all = objects.are_all();
    table.missed = reinterpret_cast<devlib::Int32*>(const_cast<std::byte*>(begin) + kHeaderBytes);
    const std::size_t previous_bytes = previous.size() * sizeof(devlib::ObjectSlot);
    std::vector<std::byte> bytes(2 * kHeaderBytes + previous_bytes);
    std::memcpy(bytes.data(), &table, sizeof table);
    if (previous_bytes > 0) std::memcpy(bytes.data() + 2 * kHeaderBytes, previous.data(), previous_bytes);
    return bytes;
}

std::unique_ptr<CudaMemory> CudaObjects::table_with(const spatial::PreviousObjects& objects, Stream& stream) {
    make_table();
    const std::int64_t size = table_size(objects);
    auto memory = std::make_unique<CudaMemory>(device_, size, /*zeroed=*/false, stream);
    device_.from_host(memory->data(), table_bytes(objects, memory->data()).data(), size, stream);
    return memory;
}

// Bytes are written beside the capture: in it, each launch of the graph would write them.
const void* CudaObjects::table_in_graph(const spatial::PreviousObjectsPtr& objects, Recording& recording) {
    struct Table {
        CudaObjects& of;
        void* data;
        std::int64_t size_bytes;
        spatial::PreviousObjectsPtr present;
        std::vector<std::byte> bytes;

        ~Table() {
            free_when_idle(of.device_, [objects = &of, at = data, size = size_bytes] {
                objects->device_.free(at, size, *objects->own_);
            });
        }
        void show() { bytes = of.table_bytes(*present, data); }
    };
    make_table();
    spatial::PreviousObjectsPtr present = objects->for_launch();
    const std::int64_t size = table_size(*present);
    const auto table = std::make_shared<Table>(*this, take(size).release(), size, std::move(present));
    table->show();
    write(table->data, table->bytes.data(), size);
    recording.memory().hold(objects);
    recording.memory().add_preparation([this, table, objects] {
        // Launches that are enqueued may still read the former objects, whose memory is freed in the stream's order.
        if (objects->have_moved(*table->present)) table->present = objects->for_launch();
        const std::vector<std::byte> before = table->bytes;
        table->show();
        if (table->bytes == before) return;
        device_.from_host(table->data, table->bytes.data(), table->size_bytes, current_stream(device_));
    });
    return table->data;
}

void CudaObjects::add_launch(const spatial::PreviousObjects& objects, std::unique_ptr<CudaMemory> table) {
    if (!objects.are_all()) return;
    objects.add_launch([this, table = std::shared_ptr<CudaMemory>(std::move(table))] {
        devlib::Int32 missed = 0;
        device_.load(&missed, static_cast<const std::byte*>(table->data()) + kHeaderBytes, sizeof missed);
        return missed != 0;
    });
}

}  // namespace weft::runtime

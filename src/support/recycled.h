// An allocator for objects that come and go by the hundred, such as those of tapes, which live for one step of a
// program. It reuses freed memory. The C library would return such memory to the system, and the next step would pay
// for each page again. Safe to use from several threads.
#pragma once

#include <cstddef>
#include <mutex>
#include <new>
#include <vector>

namespace weft {

template <typename T>
class Recycled {
public:
    using value_type = T;
    Recycled() = default;
    template <typename Other>
    Recycled(const Recycled<Other>&) {}

    T* allocate(std::size_t count) {
        if (count == 1) {
            Spare& spare = this->spare();
            const std::lock_guard lock(spare.mutex);
            if (!spare.pieces.empty()) {
                void* const piece = spare.pieces.back();
                spare.pieces.pop_back();
                return static_cast<T*>(piece);
            }
        }
        return static_cast<T*>(::operator new(count * sizeof(T), std::align_val_t{alignof(T)}));
    }
    void deallocate(T* piece, std::size_t count) {
        if (count == 1) {
            Spare& spare = this->spare();
            const std::lock_guard lock(spare.mutex);
            if (spare.pieces.size() < kMostBytes / sizeof(T)) return spare.pieces.push_back(piece);
        }
        ::operator delete(piece, std::align_val_t{alignof(T)});
    }
    bool operator==(const Recycled&) const { return true; }

private:
    static constexpr std::size_t kMostBytes = 1 << 20;  // the most memory that is kept for one type
    struct Spare {
        Spare() { pieces.reserve(kMostBytes / sizeof(T)); }  // deallocate() does not throw
        std::mutex mutex;
        std::vector<void*> pieces;
    };
    // Never destroyed: objects may be freed when the program ends.
    static Spare& spare() {
        static Spare* const spare = new Spare;
        return *spare;
    }
};

}  // namespace weft

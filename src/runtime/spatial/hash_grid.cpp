// Points are sorted by their cells in two stable steps: into runs of neighbouring cells (buckets), then within each
// bucket, whose counters fit the first-level cache. Both access memory in order.
#include "runtime/spatial/hash_grid.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "devlib/spatial/hash_grid.h"
#include "runtime/bytes.h"
#include "runtime/cpu/thread_pool.h"
#include "runtime/handles.h"
#include "runtime/spatial/device_grid.h"
#include "runtime/spatial/parallel.h"
#include "support/error.h"
#include "types/float_format.h"

namespace weft::runtime::spatial {

namespace {

constexpr const char* kApi = "HashGrid.build()";

constexpr std::int64_t kMostCells = std::numeric_limits<std::int32_t>::max() - 1;
constexpr std::int64_t kMostBuckets = 1024;
constexpr std::int64_t kChunk = 1 << 14;  // the least number of points in a chunk of work
constexpr std::int64_t kMostChunks = 64;
constexpr std::int64_t kFewestToOrder = 1 << 14;
constexpr std::int64_t kPiece = 256;  // points whose cells are computed together

struct Cell {
    std::uint32_t cell, point;
};

struct Grid {
    std::int64_t dims[3];
    double inverse_width;
    std::int64_t cells() const { return dims[0] * dims[1] * dims[2]; }
};

// Clones by features, as clones by architecture are limited to one vendor's processors. The choice between them is made
// before the thread sanitizer has started.
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
#define WEFT_FOR_PROCESSORS __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define WEFT_FOR_PROCESSORS
#endif

// The cell along one axis for each number of a piece.
WEFT_FOR_PROCESSORS
void count_cells(const double* places, const double* moved, std::int64_t count, double inverse_width, double dim,
                 double* cells) {
    const double per_dim = 1.0 / dim;
    for (std::int64_t i = 0; i < count; ++i)
        cells[i] = devlib::cell_along(places[i], moved[i], inverse_width, dim, per_dim);
}

// The linear numbers of the cells.
WEFT_FOR_PROCESSORS
void number_cells(const double (&found)[3][kPiece], std::int64_t count, double row, double plane,
                  std::uint32_t* cells) {
    for (std::int64_t i = 0; i < count; ++i)
        cells[i] = static_cast<std::uint32_t>(
            static_cast<std::int32_t>(found[2][i] * plane + found[1][i] * row + found[0][i]));
}

template <typename T>
double number_at(const std::byte* at) {
    if constexpr (sizeof(T) == 2)
        return read_scalar(Scalar::f16, at).f;
    else
        return *reinterpret_cast<const T*>(at);
}

// `T` is uint16_t for f16. `groups` may be null.
template <typename T>
void find_cells(const Grid& grid, const Array& points, const Array* groups, std::int64_t begin, std::int64_t end,
                std::uint32_t* cells) {
    double places[3][kPiece], moved[3][kPiece] = {}, found[3][kPiece];
    for (std::int64_t first = begin; first < end; first += kPiece) {
        const std::int64_t count = std::min(kPiece, end - first);
        const auto* at = static_cast<const std::byte*>(points.view.data) + first * points.view.strides[0];
        for (std::int64_t i = 0; i < count; ++i, at += points.view.strides[0])
            for (int axis = 0; axis < 3; ++axis)
                places[axis][i] = number_at<T>(at + static_cast<std::size_t>(axis) * sizeof(T));
        if (groups) {
            const auto* group = static_cast<const std::byte*>(groups->view.data) + first * groups->view.strides[0];
            for (std::int64_t i = 0; i < count; ++i, group += groups->view.strides[0])
                for (int axis = 0; axis < 3; ++axis)
                    moved[axis][i] = devlib::group_offset(*reinterpret_cast<const std::uint32_t*>(group), axis);
        }
        for (int axis = 0; axis < 3; ++axis)
            count_cells(places[axis], moved[axis], count, grid.inverse_width, static_cast<double>(grid.dims[axis]),
                        found[axis]);
        const double row = static_cast<double>(grid.dims[0]), plane = row * static_cast<double>(grid.dims[1]);
        number_cells(found, count, row, plane, cells + (first - begin));
    }
}

// ---- order ----

// A query reads the cells around its own. They are still cached for a query from a cell at most this far away.
constexpr std::int64_t kNear = 2;

struct CellCoordinates {
    std::int64_t cell[3];
};

CellCoordinates cell_coordinates(const Grid& grid, std::uint32_t cell) {
    const std::int64_t row = cell / grid.dims[0];
    return {{cell % grid.dims[0], row % grid.dims[1], row / grid.dims[1]}};
}

bool are_near(const Grid& grid, const CellCoordinates& a, const CellCoordinates& b) {
    for (int axis = 0; axis < 3; ++axis) {
        const std::int64_t apart = std::abs(a.cell[axis] - b.cell[axis]);
        if (std::min(apart, grid.dims[axis] - apart) > kNear) return false;
    }
    return true;
}

// Estimates from samples whether most points are far from all preceding points in memory.
bool are_in_no_order(const Grid& grid, const std::uint32_t* cell_of, std::int64_t count) {
    constexpr std::int64_t kSamples = 16, kBefore = 32, kWindow = 2 * kBefore;
    if (!may_need_order(count)) return false;
    int alone = 0;
    for (std::int64_t sample = 0; sample < kSamples; ++sample) {
        const std::uint32_t* const first = cell_of + (count - kWindow) * sample / (kSamples - 1);
        CellCoordinates places[kWindow];
        for (std::int64_t i = 0; i < kWindow; ++i) places[i] = cell_coordinates(grid, first[i]);
        for (std::int64_t i = kBefore; i < kWindow; ++i)
            alone += std::none_of(places + i - kBefore, places + i,
                                  [&](const CellCoordinates& before) { return are_near(grid, before, places[i]); });
    }
    return 2 * alone > kSamples * (kWindow - kBefore);
}

template <typename Body>
void for_each(std::int64_t count, const Body& body) {
    parallel_range(
        count, 1,
        [](void* state, std::int64_t begin, std::int64_t end) {
            for (std::int64_t i = begin; i < end; ++i) (*static_cast<const Body*>(state))(i);
        },
        const_cast<Body*>(&body));
}

// Sorts the points [0, count) by their cells. `cells_of(begin, end, cells)` computes those of a part. Returns true if
// the points are in no spatial order.
template <typename CellsOf>
bool sort_by_cells(std::int64_t count, const Grid& grid, const CellsOf& cells_of, Device& device, std::int32_t* starts,
                   std::int32_t* points) {
    const std::int64_t cells = grid.cells();
    int shift = 0;
    while (((cells - 1) >> shift) >= kMostBuckets) ++shift;
    const std::int64_t buckets = ((cells - 1) >> shift) + 1;
    const std::int64_t chunks = std::clamp<std::int64_t>(count / kChunk, 1, kMostChunks);
    const auto chunk_begin = [&](std::int64_t chunk) { return count * chunk / chunks; };

    // From the device, which keeps such memory from one build to the next.
    const BufferPtr memory = allocate(count * 4, device), sorted_memory = allocate(count * 8, device);
    auto* const cell_of = static_cast<std::uint32_t*>(memory->data);
    auto* const sorted = static_cast<Cell*>(sorted_memory->data);
    std::vector<std::int32_t> places(static_cast<std::size_t>(chunks * buckets));
    for_each(chunks, [&](std::int64_t chunk) {
        std::int32_t* const counts = places.data() + chunk * buckets;
        const std::int64_t begin = chunk_begin(chunk), end = chunk_begin(chunk + 1);
        cells_of(begin, end, cell_of + begin);
        for (std::int64_t i = begin; i < end; ++i) ++counts[cell_of[i] >> shift];
    });
    std::vector<std::int32_t> bucket_starts(static_cast<std::size_t>(buckets + 1));
    std::int32_t before = 0;
    for (std::int64_t bucket = 0; bucket < buckets; ++bucket) {
        bucket_starts[static_cast<std::size_t>(bucket)] = before;
        for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
            std::int32_t& place = places[static_cast<std::size_t>(chunk * buckets + bucket)];
            const std::int32_t here = place;
            place = before;
            before += here;
        }
    }
    bucket_starts.back() = before;

    for_each(chunks, [&](std::int64_t chunk) {
        std::int32_t* const next = places.data() + chunk * buckets;
        for (std::int64_t i = chunk_begin(chunk); i < chunk_begin(chunk + 1); ++i) {
            const std::uint32_t cell = cell_of[i];
            sorted[next[cell >> shift]++] = {cell, static_cast<std::uint32_t>(i)};
        }
    });
    for_each(buckets, [&](std::int64_t bucket) {
        const std::int64_t first_cell = bucket << shift,
                           end_cell = std::min(first_cell + (std::int64_t{1} << shift), cells);
        const std::int32_t begin = bucket_starts[static_cast<std::size_t>(bucket)],
                           end = bucket_starts[static_cast<std::size_t>(bucket + 1)];
        // First counts the points of each cell, shifted by one place; then turns the counts into starts, which are
        // advanced for each point.
        std::vector<std::int32_t> next(static_cast<std::size_t>(end_cell - first_cell + 1));
        for (std::int32_t i = begin; i < end; ++i) ++next[static_cast<std::size_t>(sorted[i].cell - first_cell + 1)];
        next[0] = begin;
        for (std::int64_t cell = first_cell; cell < end_cell; ++cell) {
            const auto at = static_cast<std::size_t>(cell - first_cell);
            starts[cell] = next[at];
            next[at + 1] += next[at];
        }
        for (std::int32_t i = begin; i < end; ++i) {
            const Cell& of = sorted[i];
            points[next[of.cell - static_cast<std::size_t>(first_cell)]++] = static_cast<std::int32_t>(of.point);
        }
    });
    starts[cells] = static_cast<std::int32_t>(count);
    return are_in_no_order(grid, cell_of, count);
}

BufferPtr integers(std::int64_t count, Device& device, ArrayView& view) {
    BufferPtr buffer = allocate(count * 4, device);
    view.data = buffer->data;
    view.shape[0] = count;
    view.strides[0] = 4;
    return buffer;
}

HashGridDescriptor empty_descriptor;

// Memory that queries read; kept until none can read it any more.
struct Grids : Object {
    HashGridDescriptor all, grouped;
    BufferPtr memory[5];

    Grids() { all.grouped = reinterpret_cast<std::uintptr_t>(&empty_descriptor); }
};

}  // namespace

HashGrid::HashGrid(const std::int64_t (&dims)[3], Scalar scalar, Device& device)
    : dims_{dims[0], dims[1], dims[2]}, scalar_(scalar), device_(device) {
    for (const std::int64_t dim : dims_)
        if (dim < 1 || dim > kMostCells)
            throw UsageError("HashGrid()",
                             "a grid has at least 1 cell along each axis, and at most " + std::to_string(kMostCells) +
                                 ", not " + std::to_string(dim),
                             ErrorCategory::value);
    if (dims_[0] > kMostCells / dims_[1] || dims_[0] * dims_[1] > kMostCells / dims_[2])
        throw UsageError("HashGrid()", "a grid has at most " + std::to_string(kMostCells) + " cells",
                         ErrorCategory::value);
    if (scalar != Scalar::f16 && scalar != Scalar::f32 && scalar != Scalar::f64)
        throw UsageError("HashGrid()",
                         std::string("points are of float16, float32 or float64, not of ") + info(scalar).python,
                         ErrorCategory::type);
    if (device.geometry()) {
        device_grid_ = std::make_shared<DeviceGrid>(device, dims_);
        id_ = publish(ObjectKind::hash_grid, {device_grid_->fields(), device_grid_, &device_grid_->table()});
        return;
    }
    if (!device.is_cpu || !device.is_host_memory)
        throw UsageError("HashGrid()", "grids are built in the host's memory or on a GPU, not on '" + device.alias +
                                           "'. help: device='cpu', with points.to('cpu')");
    auto empty = std::make_shared<const Grids>();
    id_ = publish(ObjectKind::hash_grid, {&empty->all, empty});
}

HashGrid::~HashGrid() { withdraw(id_); }

void HashGrid::build(const Array& points, double width, const Array* groups) {
    const Type point = Type::vector(scalar_, 3);
    if (points.ndim != 1 || points.dtype != point)
        throw UsageError(kApi,
                         "expected an array of " + point.python_name() + ", found " +
                             Type::array(points.dtype, points.ndim).python_name(),
                         ErrorCategory::type);
    const std::int64_t count = points.size();
    if (count > kMostCells)
        throw UsageError(kApi,
                         "a grid holds at most " + std::to_string(kMostCells) + " points, not " + std::to_string(count),
                         ErrorCategory::value);
    if (!(width > 0.0) || !std::isfinite(1.0 / width))
        throw UsageError(kApi, "the width of a cell (radius) is above 0, not " + std::to_string(width),
                         ErrorCategory::value);
    if (groups && (groups->ndim != 1 || groups->dtype != i32_type() || groups->size() != count))
        throw UsageError(kApi,
                         "groups are an array of int32, one for each of the " + std::to_string(count) +
                             " points; found " + Type::array(groups->dtype, groups->ndim).python_name() + " of shape " +
                             shape_text(groups->shape()),
                         ErrorCategory::type);
    for (const Array* array : {&points, groups})
        if (array && array->device != &device_)
            throw UsageError(kApi, "the grid is on '" + device_.alias + "' and an array on '" + array->device->alias +
                                       "'. help: array.to('" + device_.alias + "')");
    if (device_grid_) {
        const std::lock_guard lock(device_mutex_);
        return device_grid_->build(points, 1.0 / width, groups, id_);
    }
    build_on_host(points, width, groups);
}

void HashGrid::build_on_host(const Array& points, double width, const Array* groups) {
    device_.default_stream().synchronize();
    const std::int64_t count = points.size();
    const Grid grid{{dims_[0], dims_[1], dims_[2]}, 1.0 / width};
    auto made = std::make_shared<Grids>();
    const auto fill = [&](HashGridDescriptor& descriptor, const Array* moved_by, BufferPtr* memory) {
        descriptor.inverse_width = grid.inverse_width;
        for (int axis = 0; axis < 3; ++axis) descriptor.dims[axis] = static_cast<std::int32_t>(dims_[axis]);
        descriptor.count = static_cast<std::int32_t>(count);
        memory[0] = integers(grid.cells() + 1, device_, descriptor.starts);
        memory[1] = integers(count, device_, descriptor.points);
        const auto cells_of = [&](std::int64_t begin, std::int64_t end, std::uint32_t* cells) {
            if (scalar_ == Scalar::f64)
                find_cells<double>(grid, points, moved_by, begin, end, cells);
            else if (scalar_ == Scalar::f32)
                find_cells<float>(grid, points, moved_by, begin, end, cells);
            else
                find_cells<std::uint16_t>(grid, points, moved_by, begin, end, cells);
        };
        descriptor.in_no_order =
            sort_by_cells(count, grid, cells_of, device_, static_cast<std::int32_t*>(descriptor.starts.data),
                          static_cast<std::int32_t*>(descriptor.points.data));
    };
    fill(made->all, nullptr, made->memory);
    if (groups) {
        HashGridDescriptor& grouped = made->grouped;
        fill(grouped, groups, made->memory + 2);
        made->memory[4] = integers(count, device_, grouped.groups);
        const auto* group = static_cast<const std::byte*>(groups->view.data);
        const auto* order = static_cast<const std::int32_t*>(grouped.points.data);
        auto* to = static_cast<std::int32_t*>(grouped.groups.data);
        for (std::int64_t i = 0; i < count; ++i)
            to[i] = *reinterpret_cast<const std::int32_t*>(group + order[i] * groups->view.strides[0]);
        made->all.grouped = reinterpret_cast<std::uintptr_t>(&grouped);
    }
    replace(id_, {&made->all, made});
}

void HashGrid::reserve(std::int64_t points, bool with_groups) {
    if (points < 0)
        throw UsageError("HashGrid.reserve()", "expected a number of points, not " + std::to_string(points),
                         ErrorCategory::value);
    if (device_grid_) {
        const std::lock_guard lock(device_mutex_);
        return device_grid_->reserve(points, with_groups);
    }
    // The device keeps freed blocks for requests of the same size.
    std::vector<BufferPtr> kept;
    for (int grid = 0; grid < (with_groups ? 2 : 1); ++grid) {
        kept.push_back(allocate((dims_[0] * dims_[1] * dims_[2] + 1) * 4, device_));
        kept.push_back(allocate(points * 4, device_));
    }
    if (with_groups) kept.push_back(allocate(points * 4, device_));
}

std::pair<HashGridDescriptor, HashGridDescriptor> HashGrid::describe() const {
    if (!device_grid_) {
        const auto& all = *static_cast<const HashGridDescriptor*>(find_descriptor(id_, ObjectKind::hash_grid));
        return {all, *reinterpret_cast<const HashGridDescriptor*>(all.grouped)};
    }
    current_stream(device_).synchronize();
    devlib::HashGridFields fields[2];
    read_bytes(device_, fields, device_grid_->fields(), sizeof fields);
    const auto descriptor = [](const devlib::HashGridFields& of) {
        HashGridDescriptor made;
        static_assert(offsetof(HashGridDescriptor, in_no_order) == sizeof of);
        std::memcpy(static_cast<void*>(&made), &of, sizeof of);
        return made;
    };
    return {descriptor(fields[0]), descriptor(fields[1])};
}

// ---- for launches ----

namespace {

// Estimates from samples whether places are adjacent if their numbers are adjacent among the points of the grid.
bool follow(const HashGridDescriptor& descriptor, const PositionField& places) {
    constexpr std::int64_t kSamples = 32;
    static_assert(2 * kSamples <= kPiece);
    const Grid grid{{descriptor.dims[0], descriptor.dims[1], descriptor.dims[2]}, descriptor.inverse_width};
    const auto* const points = static_cast<const std::int32_t*>(descriptor.points.data);
    double at[3][2 * kSamples], found[3][2 * kSamples];
    constexpr double kNotMoved[2 * kSamples] = {};
    for (std::int64_t i = 0; i < 2 * kSamples; ++i) {
        const std::int32_t point = points[(descriptor.count - 2) * (i / 2) / (kSamples - 1) + i % 2];
        const auto* const place =
            static_cast<const std::byte*>(places.array.data) + point * places.array.strides[0] + places.offset;
        for (int axis = 0; axis < 3; ++axis) {
            const std::byte* const number = place + axis * (info(places.scalar).bits / 8);
            at[axis][i] = places.scalar == Scalar::f64   ? number_at<double>(number)
                          : places.scalar == Scalar::f32 ? number_at<float>(number)
                                                         : number_at<std::uint16_t>(number);
        }
    }
    for (int axis = 0; axis < 3; ++axis)
        count_cells(at[axis], kNotMoved, 2 * kSamples, grid.inverse_width, static_cast<double>(grid.dims[axis]),
                    found[axis]);
    const auto cell_of = [&](std::int64_t i) {
        CellCoordinates place;
        for (int axis = 0; axis < 3; ++axis) place.cell[axis] = static_cast<std::int64_t>(found[axis][i]);
        return place;
    };
    int near = 0;
    for (std::int64_t i = 0; i < 2 * kSamples; i += 2) near += are_near(grid, cell_of(i), cell_of(i + 1));
    return 2 * near > kSamples;
}

}  // namespace

bool may_need_order(std::int64_t count) { return count >= kFewestToOrder; }

const HashGridDescriptor* order_for(std::uint64_t id, std::int64_t count, const PositionField& places) {
    const PreviousObjectsPtr& previous = SnapshotScope::current();
    const auto& grid = *static_cast<const HashGridDescriptor*>(previous ? previous->find(id, ObjectKind::hash_grid)
                                                                        : find_descriptor(id, ObjectKind::hash_grid));
    if (!grid.in_no_order || grid.count != count || places.array.shape[0] != count || !places.array.data)
        return nullptr;
    return follow(grid, places) ? &grid : nullptr;
}

namespace {

// `kBytes` 0: a size known only at run time.
template <std::size_t kBytes>
void sort_range(const ArrayView& from, std::size_t element_bytes, const std::int32_t* numbers, std::byte* to,
                std::int64_t begin, std::int64_t end) {
    const std::size_t bytes = kBytes > 0 ? kBytes : element_bytes;
    const auto* const data = static_cast<const std::byte*>(from.data);
    for (std::int64_t i = begin; i < end; ++i)
        std::memcpy(to + static_cast<std::size_t>(i) * bytes, data + numbers[i] * from.strides[0], bytes);
}

}  // namespace

void sort_elements(const ArrayView& from, std::int64_t element_bytes, const ArrayView& numbers, void* to) {
    const auto bytes = static_cast<std::size_t>(element_bytes);
    const auto sort = bytes == 4    ? sort_range<4>
                      : bytes == 8  ? sort_range<8>
                      : bytes == 12 ? sort_range<12>
                      : bytes == 24 ? sort_range<24>
                                    : sort_range<0>;
    const auto* const order = static_cast<const std::int32_t*>(numbers.data);
    for_ranges(numbers.shape[0], kChunk, [&](std::int64_t begin, std::int64_t end) {
        sort(from, bytes, order, static_cast<std::byte*>(to), begin, end);
    });
}

namespace {

template <typename T>
void add_range(const T* from, std::int64_t count, const std::int32_t* numbers, const ArrayView& to, std::int64_t begin,
               std::int64_t end) {
    auto* const gradient = static_cast<std::byte*>(to.grad);
    for (std::int64_t i = begin; i < end; ++i) {
        auto* const element = reinterpret_cast<T*>(gradient + numbers[i] * to.strides[0]);
        for (std::int64_t k = 0; k < count; ++k) element[k] += from[i * count + k];
    }
}

}  // namespace

// Precondition: the numbers are distinct.
void add_sorted(const void* from, Scalar scalar, std::int64_t count, const ArrayView& numbers, const ArrayView& to) {
    const auto* const order = static_cast<const std::int32_t*>(numbers.data);
    for_ranges(numbers.shape[0], kChunk, [&](std::int64_t begin, std::int64_t end) {
        if (scalar == Scalar::f64)
            add_range(static_cast<const double*>(from), count, order, to, begin, end);
        else
            add_range(static_cast<const float*>(from), count, order, to, begin, end);
    });
}

}  // namespace weft::runtime::spatial

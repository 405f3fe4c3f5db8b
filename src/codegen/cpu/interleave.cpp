// Neighbouring lanes that access neighbouring vec3s: wide accesses and shuffles in place of gathers.
//
// Memory holds element after element, c components each: x0 y0 z0 x1 y1 z1 ... The result is one register per
// component. The lanes are cut into segments of L (the numbers in 128 bits: 4 floats, 2 doubles), because shuffles are
// cheap inside 128 bits. The L * c numbers of a segment are c chunks of L numbers; chunk j of every segment together
// make register m_j:
//
//     lanes 0-3:  x0 y0 z0 x1 | y1 z1 x2 y2 | z2 x3 y3 z3      lanes 4-7:  x4 y4 z4 x5 | y5 ...
//     m_0 = x0 y0 z0 x1  x4 y4 z4 x5,  m_1 = y1 z1 x2 y2  y5 z5 x6 y6,  m_2 = ...
//
// From the m_j to the components is then one pattern of shuffles inside segments, the same for every segment.
#include "codegen/cpu/emitter.h"

namespace weft::codegen {

namespace {

int segment_length(const LeafType& type) { return std::clamp(16 / info(type.scalar).bytes(), 2, 4); }

// A number of a segment: its register, and its position there.
struct ShuffleSource {
    int source, position;
};

}  // namespace

bool CpuEmitter::is_packed(const Address& address, const std::vector<LeafType>& leaves,
                           std::int64_t element_bytes) const {
    if (lanes_.count == 1 || mask_ || !address.base || !address.step || address.offsets) return false;
    auto* step = llvm::dyn_cast<llvm::ConstantInt>(address.step);
    int count = static_cast<int>(leaves.size());
    if (!step || count < 2) return false;
    std::int64_t size = leaves[0].pointer ? 8 : info(leaves[0].scalar).bytes();
    for (int i = 0; i < count; ++i) {
        const LeafType& leaf = leaves[static_cast<std::size_t>(i)];
        if (leaf.pointer || leaf.scalar != leaves[0].scalar || leaf.offset != i * size) return false;
    }
    return element_bytes == count * size && step->getSExtValue() == element_bytes;
}

bool CpuEmitter::interleaves(const Address& address, const std::vector<LeafType>& leaves,
                             std::int64_t element_bytes) const {
    return leaves.size() <= kMostInterleaved && is_packed(address, leaves, element_bytes) &&
           lanes_.count % segment_length(leaves[0]) == 0;
}

// One shuffle inside every segment: positions below L are a's, the others b's.
llvm::Value* CpuEmitter::shuffle_segments(llvm::Value* a, llvm::Value* b, llvm::ArrayRef<int> positions) {
    int length = static_cast<int>(positions.size());
    llvm::SmallVector<int, 16> lanes;
    for (int segment = 0; segment < lanes_.count / length; ++segment)
        for (int position : positions)
            lanes.push_back(position < length ? segment * length + position
                                              : lanes_.count + segment * length + position - length);
    return builder_.CreateShuffleVector(a, b, lanes);
}

// Shuffle positions of the chunks numbered a and b in two registers laid end to end.
static llvm::SmallVector<int, 16> two_chunks(int a, int b, int length) {
    llvm::SmallVector<int, 16> lanes;
    for (int chunk : {a, b})
        for (int q = 0; q < length; ++q) lanes.push_back(chunk * length + q);
    return lanes;
}

// One register whose segments hold the numbers at `places` of `sources`, in as few two-operand shuffles as possible.
static llvm::Value* collect(
    llvm::ArrayRef<llvm::Value*> sources, llvm::ArrayRef<ShuffleSource> places,
    const std::function<llvm::Value*(llvm::Value*, llvm::Value*, llvm::ArrayRef<int>)>& shuffle) {
    int length = static_cast<int>(places.size());
    llvm::SmallVector<int, 4> distinct;
    for (ShuffleSource place : places)
        if (std::find(distinct.begin(), distinct.end(), place.source) == distinct.end())
            distinct.push_back(place.source);
    auto source = [&](int number) { return sources[static_cast<std::size_t>(number)]; };
    if (distinct.size() <= 2) {
        int a = distinct.front(), b = distinct.back();
        llvm::SmallVector<int, 4> positions;
        for (ShuffleSource place : places)
            positions.push_back(place.source == a ? place.position : length + place.position);
        return shuffle(source(a), source(b), positions);
    }
    auto half = [&](std::size_t first) {
        ShuffleSource a = places[first], b = places[first + 1];
        return shuffle(source(a.source), source(b.source),
                       {a.position, a.position, length + b.position, length + b.position});
    };
    llvm::Value *low = half(0), *high = half(2);
    return shuffle(low, high, {0, 2, 4, 6});
}

// Transposes four registers of four. The same shuffles are their own inverse.
static llvm::SmallVector<llvm::Value*, 4> transpose4(
    llvm::ArrayRef<llvm::Value*> m,
    const std::function<llvm::Value*(llvm::Value*, llvm::Value*, llvm::ArrayRef<int>)>& shuffle) {
    llvm::Value *a = shuffle(m[0], m[1], {0, 4, 1, 5}), *b = shuffle(m[0], m[1], {2, 6, 3, 7});
    llvm::Value *c = shuffle(m[2], m[3], {0, 4, 1, 5}), *d = shuffle(m[2], m[3], {2, 6, 3, 7});
    return {shuffle(a, c, {0, 1, 4, 5}), shuffle(a, c, {2, 3, 6, 7}), shuffle(b, d, {0, 1, 4, 5}),
            shuffle(b, d, {2, 3, 6, 7})};
}

// For scattered vectors of two to four floats, one or two loads each and shuffles take less time than a gather for each
// component.
bool CpuEmitter::is_in_rows(const Address& address, const std::vector<LeafType>& leaves) const {
    if (lanes_.count < 4 || address.uniform() || (!address.offsets && !address.bases) || !machine_.loads_rows)
        return false;
    if (leaves.size() < 2 || leaves.size() > 4) return false;
    for (std::size_t i = 0; i < leaves.size(); ++i)
        if (leaves[i].pointer || leaves[i].scalar != Scalar::f32 ||
            leaves[i].offset != leaves[0].offset + static_cast<std::int64_t>(4 * i))
            return false;
    return true;
}

void CpuEmitter::load_rows(Address& address, const std::vector<LeafType>& leaves, LaneValue& result) {
    const auto count = static_cast<int>(leaves.size());
    auto* const number = memory_type(leaves[0]);
    const llvm::Align alignment(4);
    llvm::SmallVector<llvm::Value*, 16> rows;
    for (llvm::Value* pointer : single_pointers(address, false)) {
        const auto load = [&](int first, int numbers) {
            auto* const type = llvm::FixedVectorType::get(number, static_cast<unsigned>(numbers));
            llvm::Value* from = byte_offset(pointer, leaves[static_cast<std::size_t>(first)].offset);
            return with_alias(builder_.CreateAlignedLoad(type, from, alignment), address.root);
        };
        if (count == 4) {
            rows.push_back(load(0, 4));
            continue;
        }
        llvm::Value* row = builder_.CreateShuffleVector(load(0, 2), llvm::ArrayRef<int>{0, 1, -1, -1});
        if (count == 3) {
            llvm::Value* from = byte_offset(pointer, leaves[2].offset);
            llvm::Value* last = with_alias(builder_.CreateAlignedLoad(number, from, alignment), address.root);
            row = builder_.CreateInsertElement(row, last, std::uint64_t{2});
        }
        rows.push_back(row);
    }
    // Rows 0, 4, 8, ... side by side, and so on; then a transposition.
    llvm::SmallVector<llvm::Value*, 4> side_by_side;
    for (std::size_t first = 0; first < 4; ++first) {
        llvm::SmallVector<llvm::Value*, 4> parts;
        for (std::size_t row = first; row < rows.size(); row += 4) parts.push_back(rows[row]);
        while (parts.size() > 1) {
            llvm::SmallVector<llvm::Value*, 4> joined;
            for (std::size_t i = 0; i < parts.size(); i += 2) {
                const int half =
                    static_cast<int>(llvm::cast<llvm::FixedVectorType>(parts[i]->getType())->getNumElements());
                joined.push_back(builder_.CreateShuffleVector(parts[i], parts[i + 1], two_chunks(0, 1, half)));
            }
            parts = joined;
        }
        side_by_side.push_back(parts[0]);
    }
    const auto shuffle = [&](llvm::Value* a, llvm::Value* b, llvm::ArrayRef<int> p) {
        return shuffle_segments(a, b, p);
    };
    const llvm::SmallVector<llvm::Value*, 4> components = transpose4(side_by_side, shuffle);
    for (int i = 0; i < count; ++i)
        result.leaves.push_back(
            Leaf::of_vector(from_memory(components[static_cast<std::size_t>(i)], leaves[static_cast<std::size_t>(i)])));
}

void CpuEmitter::load_interleaved(const Address& address, const std::vector<LeafType>& leaves, LaneValue& result) {
    int count = static_cast<int>(leaves.size()), length = segment_length(leaves[0]), segments = lanes_.count / length;
    std::int64_t size = info(leaves[0].scalar).bytes();
    llvm::Align alignment(static_cast<std::uint64_t>(size));
    // Each load takes two chunks. A pair of segments is `count` loads, and m_j of the pair has half of two of them.
    int width = std::min(segments, 2) * length;
    auto* type = llvm::FixedVectorType::get(memory_type(leaves[0]), static_cast<unsigned>(width));
    std::vector<llvm::SmallVector<llvm::Value*, 8>> parts(static_cast<std::size_t>(count));
    for (int first = 0; first < segments; first += 2) {
        llvm::SmallVector<llvm::Value*, kMostInterleaved> loads;
        for (int i = 0; i < count; ++i) {
            llvm::Value* pointer = byte_offset(address.base, (first * count * length + i * width) * size);
            loads.push_back(with_alias(builder_.CreateAlignedLoad(type, pointer, alignment), address.root));
        }
        for (int chunk = 0; chunk < count; ++chunk) {
            auto from = [&](int number) { return loads[static_cast<std::size_t>(number / 2)]; };
            parts[static_cast<std::size_t>(chunk)].push_back(
                segments == 1 ? loads[static_cast<std::size_t>(chunk)]
                              : builder_.CreateShuffleVector(from(chunk), from(count + chunk),
                                                             two_chunks(chunk % 2, 2 + (count + chunk) % 2, length)));
        }
    }
    llvm::SmallVector<llvm::Value*, kMostInterleaved> chunks;
    for (auto& pairs : parts) {
        // Join them; their number is a power of two.
        while (pairs.size() > 1) {
            llvm::SmallVector<llvm::Value*, 8> joined;
            for (std::size_t i = 0; i < pairs.size(); i += 2) {
                int half = static_cast<int>(llvm::cast<llvm::FixedVectorType>(pairs[i]->getType())->getNumElements());
                joined.push_back(builder_.CreateShuffleVector(pairs[i], pairs[i + 1], two_chunks(0, 1, half)));
            }
            pairs = joined;
        }
        chunks.push_back(pairs[0]);
    }

    auto shuffle = [&](llvm::Value* a, llvm::Value* b, llvm::ArrayRef<int> p) { return shuffle_segments(a, b, p); };
    llvm::SmallVector<llvm::Value*, kMostInterleaved> components;
    if (length == 4 && count == 3) {
        llvm::Value* xy = shuffle(chunks[1], chunks[2], {2, 3, 5, 6});  // x2 y2 x3 y3
        llvm::Value* yz = shuffle(chunks[0], chunks[1], {1, 2, 4, 5});  // y0 z0 y1 z1
        components = {shuffle(chunks[0], xy, {0, 3, 4, 6}), shuffle(yz, xy, {0, 2, 5, 7}),
                      shuffle(yz, chunks[2], {1, 3, 4, 7})};
    } else if (length == 4 && count == 4) {
        components.append(transpose4(chunks, shuffle));
    } else {
        for (int component = 0; component < count; ++component) {
            llvm::SmallVector<ShuffleSource, 4> places;
            for (int element = 0; element < length; ++element) {
                int number = element * count + component;
                places.push_back({number / length, number % length});
            }
            components.push_back(collect(chunks, places, shuffle));
        }
    }
    for (llvm::Value* component : components)
        result.leaves.push_back(Leaf::of_vector(from_memory(component, leaves[0])));
}

void CpuEmitter::store_interleaved(const Address& address, const std::vector<LeafType>& leaves, LaneValue& value) {
    int count = static_cast<int>(leaves.size()), length = segment_length(leaves[0]), segments = lanes_.count / length;
    std::int64_t size = info(leaves[0].scalar).bytes();
    llvm::Align alignment(static_cast<std::uint64_t>(size));
    llvm::SmallVector<llvm::Value*, kMostInterleaved> components;
    for (Leaf& leaf : value.leaves) components.push_back(to_memory(vector(leaf), leaves[0]));

    auto shuffle = [&](llvm::Value* a, llvm::Value* b, llvm::ArrayRef<int> p) { return shuffle_segments(a, b, p); };
    llvm::SmallVector<llvm::Value*, kMostInterleaved> chunks;
    if (length == 4 && count == 3) {
        llvm::Value *x = components[0], *y = components[1], *z = components[2];
        llvm::Value* xy = shuffle(x, y, {0, 2, 4, 6});  // x0 x2 y0 y2
        llvm::Value* yz = shuffle(y, z, {1, 3, 5, 7});  // y1 y3 z1 z3
        llvm::Value* zx = shuffle(z, x, {0, 2, 5, 7});  // z0 z2 x1 x3
        chunks = {shuffle(xy, zx, {0, 2, 4, 6}), shuffle(yz, xy, {0, 2, 5, 7}), shuffle(zx, yz, {1, 3, 5, 7})};
    } else if (length == 4 && count == 4) {
        chunks.append(transpose4(components, shuffle));
    } else {
        for (int chunk = 0; chunk < count; ++chunk) {
            llvm::SmallVector<ShuffleSource, 4> places;
            for (int q = 0; q < length; ++q)
                places.push_back({(chunk * length + q) % count, (chunk * length + q) / count});
            chunks.push_back(collect(components, places, shuffle));
        }
    }
    for (int first = 0; first < segments; first += 2)
        for (int i = 0; i < count; ++i) {
            // Positions of chunks in the registers: segment after segment.
            int a = 2 * i, b = 2 * i + 1;
            auto from = [&](int number) { return chunks[static_cast<std::size_t>(number % count)]; };
            llvm::Value* part =
                segments == 1
                    ? chunks[static_cast<std::size_t>(i)]
                    : builder_.CreateShuffleVector(from(a), from(b),
                                                   two_chunks(first + a / count, segments + first + b / count, length));
            int width = std::min(segments, 2) * length;
            llvm::Value* pointer = byte_offset(address.base, (first * count * length + i * width) * size);
            with_alias(builder_.CreateAlignedStore(part, pointer, alignment), address.root);
        }
}

}  // namespace weft::codegen

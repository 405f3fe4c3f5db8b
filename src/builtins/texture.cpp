// Textures (runtime/spatial/texture.h), sampled by IR: derivatives by the coordinates and by the level follow from the
// arithmetic. Texels are constants for gradients.
//
// One type of texture may have any format, filter and address modes. They are read from the descriptor at run time, and
// the branches over them are uniform if the texture is. Texel i of n is centred at i + 0.5. With linear filtering, a
// sample at x takes the texels floor(x - 0.5) and the next one along each axis, the last axis innermost, each pair as
// a + t (b - a).
#include <algorithm>
#include <array>

#include "builtins/groups.h"
#include "builtins/objects.h"

namespace weft::builtins {

namespace {

// Address modes and filters as in warp.TextureAddressMode and warp.TextureFilterMode.
constexpr int kMirror = 2, kBorder = 3;
constexpr int kLinear = 1;
// Formats by their numbers in runtime/spatial/texture.h: pairs of an unsigned and a signed one.
constexpr int kFloat32 = 0, kLast8Bit = 2, kLast16Bit = 4, kFloat16 = 5, kUint32 = 6, kInt32 = 7;

// No texel has a larger index. The sum of two periods of an axis fits int32.
constexpr double kMostCells = 1e9;

using Values = std::vector<E>;

// Several values from one of two regions.
Values branch_all(E condition, const std::vector<Type>& types, const std::function<Values()>& then,
                  const std::function<Values()>& otherwise) {
    ir::Builder& b = condition.builder();
    ir::Operation* const chosen = b.if_(condition, types);
    for (std::size_t arm = 0; arm < 2; ++arm) {
        const ir::Builder::Inside inside(b, chosen->body(arm));
        const Values values = arm == 0 ? then() : otherwise();
        b.yield({values.begin(), values.end()});
    }
    Values results;
    for (ir::Value* const result : chosen->results) results.emplace_back(b, result);
    return results;
}

Values integers(std::size_t count, const E& like) { return Values(count, like.wrap(like.builder().integer(0))); }
std::vector<Type> types_of(const Values& values) {
    std::vector<Type> types;
    for (const E& value : values) types.push_back(value.type());
    return types;
}

// The cell of a coordinate: floor(x) as an integer, for any x.
E cell_of(E low) { return cast(min(max(low, -kMostCells), kMostCells), Scalar::i32); }

// One level of a texture's pyramid.
struct Level {
    E start;         // its first texel
    Values extents;  // of each axis, width first
};

class Sampler {
public:
    Sampler(E id, int dims, Type result, Values coordinates)
        : texture_(ObjectKind::texture, object(ObjectKind::texture, id)),
          result_(result),
          channels_(texture_["channels"]),
          format_(texture_["format"]),
          coordinates_(std::move(coordinates)) {
        const E extents = texture_["extents"], modes = texture_["address_modes"];
        for (int axis = 0; axis < dims; ++axis) {
            extents_.push_back(extents[axis]);
            modes_.push_back(modes[axis]);
        }
    }

    // A texture that is not there has the width 0, and samples of zero.
    E sample(E lod) const {
        return branch(
            extents_[0] > 0, result_, [&] { return scaled(of_levels(lod)); },
            [&] { return lod.wrap(lod.builder().zero(result_)); });
    }

private:
    E zero() const { return extents_[0].wrap(extents_[0].builder().zero(result_)); }

    // Integers of 8 and 16 bits are interpolated as such, and divided here.
    E scaled(E value) const {
        const E divisor = texture_["divisor"];
        return branch(divisor != 1.0, result_, [&] { return value / divisor; }, [&] { return value; });
    }

    // ---- levels ----

    E of_levels(E lod) const {
        const ir::Operation* const constant = lod.value()->definition;
        const bool is_first = constant && constant->op == ir::Op::constant && !(constant->numbers[0].as_double() > 0);
        if (is_first) return of_level(level(std::nullopt));
        const E last = cast(texture_["levels"] - 1.0, Scalar::f32);
        const E at = min(max(lod, 0.0), last);
        const E is_linear = texture_["mip_filter_mode"] == kLinear;
        const E first = select(is_linear, floor(at), floor(at + 0.5));
        const E value = of_level(level(cast(first, Scalar::i32)));
        return branch(
            is_linear && first < last, result_,
            [&] {
                const E next = of_level(level(cast(first + 1.0, Scalar::i32)));
                return value + (at - first) * (next - value);
            },
            [&] { return value; });
    }

    Level level(std::optional<E> number) const {
        if (!number) return {integers(1, extents_[0])[0], extents_};
        const E starts = texture_["level_starts"];
        Level result{starts.wrap(starts.builder().load(starts, {*number})), {}};
        for (const E& extent : extents_) result.extents.push_back(max(extent >> *number, 1.0));
        return result;
    }

    E of_level(const Level& level) const {
        Values places;
        for (std::size_t axis = 0; axis < level.extents.size(); ++axis) {
            const E u = coordinates_[axis];
            places.push_back(u * select(texture_["is_normalized"] != 0, cast(level.extents[axis], Scalar::f32), 1.0));
        }
        return branch(
            texture_["filter_mode"] == kLinear, result_, [&] { return linear(level, places); },
            [&] { return closest(level, places); });
    }

    // ---- texels around a place ----

    // Two neighbouring cells along an axis as indices of texels.
    Values addressed(std::size_t axis, E cell, E extent, bool is_pair) const {
        const E mode = modes_[axis];
        const std::vector<Type> types = types_of(integers(is_pair ? 2 : 1, cell));
        const auto inside = [&](E index) { return min(max(index, 0.0), extent - 1.0); };
        return branch_all((mode & 1.0) == 0, types,
                          [&] {  // WRAP, MIRROR: mirrored texels have twice the period
                              const E period = select(mode == kMirror, extent * 2.0, extent);
                              E at = select(cell < 0, cell + period, select(cell >= period, cell - period, cell));
                              at = branch(
                                  at < 0 || at >= period, at.type(),
                                  [&] {
                                      const E rest = cell % period;
                                      return select(rest < 0, rest + period, rest);
                                  },
                                  [&] { return at; });
                              const auto folded = [&](E index) {
                                  return select(index >= extent, period - 1.0 - index, index);
                              };
                              if (!is_pair) return Values{folded(at)};
                              const E next = at + 1.0;
                              return Values{folded(at), folded(select(next == period, 0, next))};
                          },
                          [&] {
                              if (!is_pair) return Values{inside(cell)};
                              return Values{inside(cell), inside(cell + 1.0)};
                          });
    }

    E is_inside(std::size_t axis, E cell, E extent) const {
        return modes_[axis] != kBorder || (cell >= 0 && cell < extent);
    }
    E has_border() const {
        E any = modes_[0] == kBorder;
        for (std::size_t axis = 1; axis < modes_.size(); ++axis) any = any || modes_[axis] == kBorder;
        return any;
    }

    E closest(const Level& level, const Values& places) const {
        Values cells, indices;
        for (std::size_t axis = 0; axis < places.size(); ++axis) {
            cells.push_back(cell_of(floor(places[axis])));
            indices.push_back(addressed(axis, cells[axis], level.extents[axis], false)[0]);
        }
        const E value = texels({texel(level, indices)}, true)[0];
        return branch(
            has_border(), result_,
            [&] {
                E inside = is_inside(0, cells[0], level.extents[0]);
                for (std::size_t axis = 1; axis < cells.size(); ++axis)
                    inside = inside && is_inside(axis, cells[axis], level.extents[axis]);
                return select(inside, value, zero());
            },
            [&] { return value; });
    }

    // Corner c of a cell is the next texel along `axis` if that bit of c is set.
    E linear(const Level& level, const Values& places) const {
        const std::size_t dims = places.size(), corners = std::size_t{1} << dims;
        Values weights, cells;
        std::vector<Values> pairs;
        for (std::size_t axis = 0; axis < dims; ++axis) {
            const E place = places[axis] - 0.5, low = floor(place);
            weights.push_back(place - low);
            cells.push_back(cell_of(low));
            pairs.push_back(addressed(axis, cells[axis], level.extents[axis], true));
        }
        Values indices;
        for (std::size_t c = 0; c < corners; ++c) {
            Values corner;
            for (std::size_t axis = 0; axis < dims; ++axis) corner.push_back(pairs[axis][c >> axis & 1]);
            indices.push_back(texel(level, corner));
        }
        const Values around = texels(indices, false);
        Values values = branch_all(
            has_border(), types_of(around), [&] { return without_border(level, cells, around); },
            [&] { return around; });
        for (std::size_t axis = 0; axis < dims; ++axis) {
            for (std::size_t n = 0; 2 * n < values.size(); ++n)
                values[n] = values[2 * n] + weights[axis] * (values[2 * n + 1] - values[2 * n]);
            values.erase(values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
        }
        return values[0];
    }

    Values without_border(const Level& level, const Values& cells, const Values& around) const {
        std::vector<Values> inside;
        for (std::size_t axis = 0; axis < cells.size(); ++axis)
            inside.push_back({is_inside(axis, cells[axis], level.extents[axis]),
                              is_inside(axis, cells[axis] + 1.0, level.extents[axis])});
        Values result;
        for (std::size_t c = 0; c < around.size(); ++c) {
            E all = inside[0][c & 1];
            for (std::size_t axis = 1; axis < cells.size(); ++axis) all = all && inside[axis][c >> axis & 1];
            result.push_back(select(all, around[c], zero()));
        }
        return result;
    }

    // ---- memory ----

    E texel(const Level& level, const Values& indices) const {
        E at = indices.back();
        for (std::size_t axis = indices.size() - 1; axis-- > 0;) at = at * level.extents[axis] + indices[axis];
        return at + level.start;
    }

    // The value of a texel by the indices of its numbers, one for each channel of the result. Channels that it lacks
    // are zero.
    using Number = std::function<E(E)>;
    E texel_of(const Values& numbers, const Number& number) const {
        if (result_.is_scalar()) return number(numbers[0]);
        Values parts;
        for (std::size_t c = 0; c < numbers.size(); ++c) {
            const E value = number(numbers[c]);
            parts.push_back(c == 0 ? value : select(channels_ > static_cast<double>(c), value, 0));
        }
        return make_vector(parts);
    }

    // The indices of the numbers of texels. Those of channels that a texel lacks are of its last one.
    std::vector<Values> numbers_of(const Values& texels) const {
        Values places;
        for (int c = 0; c < result_.components(); ++c)
            places.push_back(c == 0 ? channels_.number(0) : min(channels_.number(c), channels_ - 1.0));
        std::vector<Values> result;
        for (const E& texel : texels) {
            const E first = texel * channels_;
            Values& numbers = result.emplace_back();
            for (std::size_t c = 0; c < places.size(); ++c) numbers.push_back(c == 0 ? first : first + places[c]);
        }
        return result;
    }

    // Texels as floats; those of integers are not divided. 32-bit integers are not filtered linearly.
    Values texels(const Values& indices, bool with_integers) const {
        const std::vector<Type> types(indices.size(), result_);
        const std::vector<Values> numbers = numbers_of(indices);
        const auto all = [&](const Number& number) {
            Values values;
            for (const Values& each : numbers) values.push_back(texel_of(each, number));
            return values;
        };
        const auto floats = [&](std::string_view field) {
            const E array = texture_[field];
            return all([&](E at) { return cast(load(array, at), Scalar::f32); });
        };
        return branch_all(
            format_ == kFloat32, types, [&] { return vectors_or(indices, [&] { return floats("float32"); }); },
            [&] {
                const Values words = words_of(numbers);
                std::size_t next = 0;
                const auto each = [&](const Number& convert) {
                    next = 0;
                    return all([&](E) { return convert(words[next++]); });
                };
                return branch_all(
                    format_ == kFloat16, types,
                    [&] {
                        return each([&](E word) {
                            const E value = bitcast(cast(word, Scalar::u16), Scalar::f16);
                            return unary(ir::Op::detach, cast(value, Scalar::f32));
                        });
                    },
                    [&] { return each(integer_reader(with_integers)); });
            });
    }

    E load(E array, E index) const {
        const E value = array.wrap(array.builder().load(array, {index}));
        return value.scalar().is_float() ? unary(ir::Op::detach, value) : value;
    }

    // Texels of float32 with the channels of the result are read as vectors.
    Values vectors_or(const Values& indices, const std::function<Values()>& otherwise) const {
        if (result_.is_scalar()) return otherwise();
        return branch_all(
            channels_ == result_.rows(), std::vector<Type>(indices.size(), result_),
            [&] {
                const E array = texture_[result_.rows() == 2 ? "float32x2" : "float32x4"];
                Values values;
                for (const E& index : indices) values.push_back(load(array, index));
                return values;
            },
            otherwise);
    }

    // The bits of numbers of all formats: words of 32 bits are read, since processors gather these.
    Values words_of(const std::vector<Values>& numbers) const {
        const E array = texture_["uint32"], zero = format_.number(0);
        const E is_byte = format_ <= kLast8Bit, is_short = format_ <= kFloat16;
        const auto by_width = [&](double byte, double half, double word) {
            return select(is_byte, zero + byte, select(is_short, zero + half, zero + word));
        };
        const E shift = by_width(2, 1, 0), last = by_width(3, 1, 0), bits = by_width(8, 16, 0);
        const E mask = cast(by_width(0xff, 0xffff, -1), Scalar::u32);
        Values words;
        for (const Values& texel : numbers)
            for (const E& at : texel)
                words.push_back((load(array, at >> shift) >> cast((at & last) * bits, Scalar::u32)) & mask);
        return words;
    }

    // Integers as floats. Those of 8 and 16 bits are at least -127 and -32767, so that a division gives -1 or more.
    Number integer_reader(bool with_words) const {
        const E is_signed = format_ == kLast8Bit || format_ == kLast16Bit;
        const E sign = select(is_signed, select(format_ == kLast8Bit, format_.number(0x80), format_.number(0x8000)), 0);
        const E least = select(format_ == kInt32, static_cast<double>(INT32_MIN), min(1.0 - sign, 0.0));
        const E is_unsigned_word = format_ == kUint32;
        return [=](E word) {
            const E number = cast(max((bitcast(word, Scalar::i32) ^ sign) - sign, least), Scalar::f32);
            return with_words ? select(is_unsigned_word, cast(word, Scalar::f32), number) : number;
        };
    }

    Descriptor texture_;
    Type result_;
    E channels_, format_;
    Values coordinates_, extents_, modes_;
};

// ---- calls ----

E id_of(const Call& call) { return argument(call, 0)[0]; }  // the first field

ir::Value* sample(const Call& call, int dims, Values coordinates) {
    return Sampler(id_of(call), dims, call.types.at("dtype"), std::move(coordinates))
        .sample(argument(call, call.arguments.size() - 1));
}

template <int kDims>
ir::Value* expand_vector(Call& call) {
    Values coordinates;
    for (int axis = 0; axis < kDims; ++axis) coordinates.push_back(argument(call, 1)[axis]);
    return sample(call, kDims, std::move(coordinates));
}
template <int kDims>
ir::Value* expand_numbers(Call& call) {
    Values coordinates;
    for (std::size_t axis = 0; axis < kDims; ++axis) coordinates.push_back(argument(call, 1 + axis));
    return sample(call, kDims, std::move(coordinates));
}

std::string refuse_other_dtype(const Match& match) {
    const Type type = match.types.at("dtype");
    const bool is_float = type.is_scalar() && type.scalar() == Scalar::f32;
    const bool is_vector = type.is_vector() && type.scalar() == Scalar::f32 && (type.rows() == 2 || type.rows() == 4);
    if (is_float || is_vector) return "";
    return "samples of textures are float32, vec2f or vec4f, and not " + type.python_name();
}

constexpr Entry kEntries[] = {
    {"texture_sample", "(tex: Texture1D, u: float32, dtype: static type, lod: float32 = -1.0) -> dtype",
     "Value of a texture at a place along its width: of the closest texel, or interpolated, as the texture says "
     "(wp.TextureFilterMode). `dtype` is float, wp.vec2 or wp.vec4: the first channels, and 0 for those that the "
     "texture "
     "lacks. `lod` is the level of a texture with mip levels; below 0 it is the first.",
     expand_numbers<1>, true, refuse_other_dtype},
    {"texture_sample", "(tex: Texture2D, uv: Vec[2,float32], dtype: static type, lod: float32 = -1.0) -> dtype",
     "The same in two dimensions: u along the width, v along the height.", expand_vector<2>, true, refuse_other_dtype},
    {"texture_sample", "(tex: Texture2D, u: float32, v: float32, dtype: static type, lod: float32 = -1.0) -> dtype",
     "The same for two numbers.", expand_numbers<2>, true, refuse_other_dtype},
    {"texture_sample", "(tex: Texture3D, uvw: Vec[3,float32], dtype: static type, lod: float32 = -1.0) -> dtype",
     "The same in three dimensions: w along the depth.", expand_vector<3>, true, refuse_other_dtype},
    {"texture_sample",
     "(tex: Texture3D, u: float32, v: float32, w: float32, dtype: static type, lod: float32 = -1.0) -> dtype",
     "The same for three numbers.", expand_numbers<3>, true, refuse_other_dtype},
};

}  // namespace

std::span<const Entry> texture_entries() { return kEntries; }

}  // namespace weft::builtins

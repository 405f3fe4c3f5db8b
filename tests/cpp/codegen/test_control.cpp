// Divergent control flow against plain loops; every lane count gives the same bits.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "codegen/harness.h"

namespace weft::test {
namespace {

class Control : public testing::TestWithParam<int> {
protected:
    Compiled compile(const std::string& text) {
        codegen::Options options;
        options.lanes = GetParam();
        return Compiled(text, options);
    }
    std::vector<float> numbers(std::size_t count, float low = -4.0f, float high = 4.0f) {
        std::uniform_real_distribution<float> distribution(low, high);
        std::vector<float> result(count);
        for (float& x : result) x = distribution(random_);
        return result;
    }
    std::vector<std::int32_t> integers(std::size_t count, int low, int high) {
        std::vector<std::int32_t> result(count);
        for (auto& x : result) x = low + static_cast<int>(random_() % static_cast<unsigned>(high - low + 1));
        return result;
    }
    std::mt19937 random_{11};
};

INSTANTIATE_TEST_SUITE_P(Lanes, Control, testing::Values(1, 4, 8, 16), testing::PrintToStringParamName());

TEST_P(Control, stores_inside_a_varying_if_touch_only_their_threads) {
    Compiled kernel = compile(R"(
kernel @branch(%x: array<f32, 1>, %y: array<f32, 1>, %z: array<vec3<f32>, 1>) tid 1 {
  %zero = constant 0 : f32
  %i = tid 0
  %v = load %x[%i]
  %c = cmp.gt %v, %zero
  %r = if %c {
    %a = mul %v, %v
    store %y[%i], %a
    yield %a
  } else {
    %b = neg %v
    %w = splat %b : vec3<f32>
    %old = load %z[%i]
    %sum = add %w, %old
    store %z[%i], %sum
    yield %b
  }
  store %x[%i], %r
  return
}
)");
    for (std::int64_t count = 0; count <= 40; ++count) {
        auto x = numbers(41), y = numbers(41), z = numbers(123), ex = x, ey = y, ez = z;
        for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
            if (x[i] > 0) {
                ex[i] = ey[i] = x[i] * x[i];
            } else {
                for (std::size_t c = 0; c < 3; ++c) ez[3 * i + c] += -x[i];
                ex[i] = -x[i];
            }
        }
        ArrayView vectors = view(z, {41});
        vectors.strides[0] = 12;
        kernel.run(count, view(x), view(y), vectors);
        EXPECT_EQ(x, ex);
        EXPECT_EQ(y, ey);
        EXPECT_EQ(z, ez);
    }
}

TEST_P(Control, nested_varying_ifs_with_gathers) {
    Compiled kernel = compile(R"(
kernel @nested(%at: array<i32, 1>, %x: array<f32, 1>, %y: array<f32, 1>, %n: i32) tid 1 {
  %zero = constant 0 : i32
  %fzero = constant 0 : f32
  %i = tid 0
  %j = load %at[%i]
  %low = cmp.ge %j, %zero
  %r, %k = if %low {
    %high = cmp.lt %j, %n
    %s, %t = if %high {
      %v = load %x[%j]
      yield %v, %j
    } else {
      yield %fzero, %n
    }
    yield %s, %t
  } else {
    %u = load %x[%zero]
    yield %u, %zero
  }
  %f = cast %k : f32
  %g = add %r, %f
  store %y[%i], %g
  return
}
)");
    for (std::int64_t count = 0; count <= 40; ++count) {
        auto x = numbers(10), y = numbers(40), expected = y;
        auto at = integers(40, -15, 25);
        for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
            int j = at[i];
            float r = j < 0 ? x[0] : j < 10 ? x[static_cast<std::size_t>(j)] : 0.0f;
            int k = j < 0 ? 0 : j < 10 ? j : 10;
            expected[i] = r + static_cast<float>(k);
        }
        kernel.run(count, view(at), view(x), view(y), std::int32_t{10});
        EXPECT_EQ(y, expected);
    }
}

TEST_P(Control, a_uniform_branch_keeps_indices_linear) {
    Compiled kernel = compile(R"(
kernel @shift(%x: array<f32, 1>, %y: array<f32, 1>, %forward: bool) tid 1 {
  %one = constant 1 : i32
  %i = tid 0
  %j = if %forward {
    %a = add %i, %one
    yield %a
  } else {
    yield %i
  }
  %v = load %x[%j]
  store %y[%i], %v
  return
}
)");
    auto x = numbers(40);
    for (bool forward : {false, true}) {
        std::vector<float> y(40), expected(40);
        for (std::size_t i = 0; i < 39; ++i) expected[i] = x[i + (forward ? 1 : 0)];
        kernel.run(39, view(x), view(y), forward);
        EXPECT_EQ(y, expected);
    }
    if (GetParam() > 1) {
        EXPECT_EQ(kernel.llvm_text().find("masked.gather"), std::string::npos);
    }
}

// for k in range(lo[i], hi[i], step): counts, sums, with a break; the counter and the flag are results too.
std::string ranged(const char* step) {
    return std::string(R"(
kernel @ranged(%lo: array<i32, 1>, %hi: array<i32, 1>, %x: array<f32, 1>, %limit: f32, %y: array<f32, 1>, %n: array<i32, 1>, %f: array<bool, 1>) tid 1 {
  %zero = constant 0 : i32
  %one = constant 1 : i32
  %fzero = constant 0 : f32
  %true = constant true : bool
  %false = constant false : bool
  %step = constant )") +
           step + R"( : i32
  %i = tid 0
  %a = load %lo[%i]
  %b = load %hi[%i]
  %s, %c, %g = for %k = %a to %b step %step carry (%sum = %fzero, %count = %zero, %go = %true) guarded {
    %big = cmp.gt %sum, %limit
    %s2, %c2, %g2 = if %big {
      yield %sum, %count, %false
    } else {
      %v = load %x[%k]
      %p = add %sum, %v
      %c3 = add %count, %one
      yield %p, %c3, %go
    }
    yield %s2, %c2, %g2
  }
  store %y[%i], %s
  store %n[%i], %c
  store %f[%i], %g
  return
}
)";
}

TEST_P(Control, loops_with_their_own_bounds_and_breaks) {
    for (int step : {1, 2, -1, -3}) {
        Compiled kernel = compile(ranged(std::to_string(step).c_str()));
        for (std::int64_t count = 0; count <= 40; ++count) {
            auto x = numbers(30, 0.0f, 1.0f), y = numbers(40), ey = y;
            auto lo = integers(40, 0, 29), hi = integers(40, 0, 29), n = integers(40, 0, 9), en = n;
            std::vector<std::uint8_t> f(40, 5), ef = f;
            for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
                float sum = 0;
                int made = 0;
                bool go = true;
                for (int k = lo[i]; go && (step > 0 ? k < hi[i] : k > hi[i]); k += step) {
                    if (sum > 3.0f) {
                        go = false;
                    } else {
                        sum += x[static_cast<std::size_t>(k)];
                        ++made;
                    }
                }
                ey[i] = sum, en[i] = made, ef[i] = go;
            }
            kernel.run(count, view(lo), view(hi), view(x), 3.0f, view(y), view(n), view(f));
            EXPECT_EQ(y, ey);
            EXPECT_EQ(n, en);
            EXPECT_EQ(f, ef);
        }
    }
}

TEST_P(Control, a_loop_up_to_the_largest_integer_ends) {
    Compiled kernel = compile(R"(
kernel @edge(%lo: array<i32, 1>, %hi: array<i32, 1>, %y: array<i32, 1>, %u: array<i32, 1>, %from: i32, %to: i32) tid 1 {
  %zero = constant 0 : i32
  %one = constant 1 : i32
  %step = constant 7 : i32
  %i = tid 0
  %a = load %lo[%i]
  %b = load %hi[%i]
  %n = for %k = %a to %b step %step carry (%count = %zero) {
    %next = add %count, %one
    yield %next
  }
  store %y[%i], %n
  %m = for %l = %from to %to step %step carry (%count2 = %zero) {
    %next2 = add %count2, %one
    yield %next2
  }
  store %u[%i], %m
  return
}
)");
    const std::int32_t largest = std::numeric_limits<std::int32_t>::max();
    std::vector<std::int32_t> lo, hi(20, largest), y(20), u(20);
    for (int i = 0; i < 20; ++i) lo.push_back(largest - i);
    kernel.run(20, view(lo), view(hi), view(y), view(u), largest - 10, largest);
    for (int i = 0; i < 20; ++i) {
        EXPECT_EQ(y[static_cast<std::size_t>(i)], (i + 6) / 7);
        EXPECT_EQ(u[static_cast<std::size_t>(i)], 2);
    }
}

const char* kMandelbrot = R"(
kernel @mandelbrot(%y: array<i32, 2>, %scale: f32, %most: i32) tid 2 {
  %zero = constant 0 : i32
  %one = constant 1 : i32
  %fzero = constant 0 : f32
  %two = constant 2 : f32
  %four = constant 4 : f32
  %shift = constant 1.5 : f32
  %i = tid 0
  %j = tid 1
  %fi = cast %i : f32
  %fj = cast %j : f32
  %si = mul %fi, %scale
  %sj = mul %fj, %scale
  %cy = sub %si, %shift
  %cx = sub %sj, %two
  %zx, %zy, %n = while carry (%x = %fzero, %y0 = %fzero, %count = %zero) {
    %xx = mul %x, %x
    %yy = mul %y0, %y0
    %r = add %xx, %yy
    %in = cmp.lt %r, %four
    %few = cmp.lt %count, %most
    %go = and %in, %few
    yield %go
  } do (%x1, %y1, %count1) {
    %xx1 = mul %x1, %x1
    %yy1 = mul %y1, %y1
    %d = sub %xx1, %yy1
    %x2 = add %d, %cx
    %xy = mul %x1, %y1
    %xy2 = mul %xy, %two
    %y2 = add %xy2, %cy
    %count2 = add %count1, %one
    yield %x2, %y2, %count2
  }
  store %y[%i, %j], %n
  return
}
)";

TEST_P(Control, while_loop_until_the_last_lane_is_done) {
    Compiled kernel = compile(kMandelbrot);
    const std::int64_t size = 37;
    std::vector<std::int32_t> y(size * size), expected(y);
    float scale = 3.0f / size;
    for (int i = 0; i < size; ++i)
        for (int j = 0; j < size; ++j) {
            // fused as the kernel's sums are: the second of two products, and a product beside a sum
            float cy = std::fma(static_cast<float>(i), scale, -1.5f),
                  cx = std::fma(static_cast<float>(j), scale, -2.0f);
            float x = 0, y0 = 0;
            int n = 0;
            while (std::fma(y0, y0, x * x) < 4.0f && n < 50) {
                float d = std::fma(-y0, y0, x * x);
                float xy = x * y0;
                x = d + cx;
                y0 = std::fma(xy, 2.0f, cy);
                ++n;
            }
            expected[static_cast<std::size_t>(i * size + j)] = n;
        }
    kernel.run_part({size, size}, 0, size * size, view(y, {size, size}), scale, std::int32_t{50});
    EXPECT_EQ(y, expected);
}

TEST_P(Control, nested_divergent_loops_with_stores) {
    Compiled kernel = compile(R"(
kernel @nested(%rows: array<i32, 1>, %columns: array<i32, 1>, %y: array<i32, 2>, %sum: array<i32, 1>) tid 1 {
  %zero = constant 0 : i32
  %one = constant 1 : i32
  %seven = constant 7 : i32
  %true = constant true : bool
  %i = tid 0
  %n = load %rows[%i]
  %total, %g = for %a = %zero to %n step %one carry (%t = %zero, %go = %true) guarded {
    %m = load %columns[%a]
    %mm = add %m, %a
    %inner, %cell = for %b = %zero to %mm step %one carry (%s = %t, %last = %zero) {
      %p = mul %a, %b
      %q = rem %p, %seven
      %odd = cmp.eq %q, %one
      %s2 = if %odd {
        store %y[%i, %b], %a
        %s3 = add %s, %b
        yield %s3
      } else {
        yield %s
      }
      yield %s2, %b
    }
    %t2 = add %inner, %cell
    %hundred = constant 100 : i32
    %small = cmp.lt %t2, %hundred
    yield %t2, %small
  }
  store %sum[%i], %total
  return
}
)");
    for (std::int64_t count = 0; count <= 40; ++count) {
        auto rows = integers(40, 0, 12), columns = integers(16, 0, 9), sum = integers(40, -5, 5), esum = sum;
        std::vector<std::int32_t> y(40 * 24, -1), ey = y;
        for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
            int t = 0;
            bool go = true;
            for (int a = 0; a < rows[i] && go; ++a) {
                int last = 0;
                for (int b = 0; b < columns[static_cast<std::size_t>(a)] + a; ++b) {
                    if (a * b % 7 == 1) {
                        ey[i * 24 + static_cast<std::size_t>(b)] = a;
                        t += b;
                    }
                    last = b;
                }
                t += last;
                go = t < 100;
            }
            esum[i] = t;
        }
        kernel.run(count, view(rows), view(columns), view(y, {40, 24}), view(sum));
        EXPECT_EQ(y, ey);
        EXPECT_EQ(sum, esum);
    }
}

TEST_P(Control, a_uniform_loop_over_an_array_of_vectors) {
    Compiled kernel = compile(R"(
kernel @forces(%p: array<vec3<f32>, 1>, %f: array<vec3<f32>, 1>, %n: i32) tid 1 {
  %zero = constant 0 : i32
  %one = constant 1 : i32
  %none = constant splat(0) : vec3<f32>
  %soft = constant 0.5 : f32
  %unit = constant 1 : f32
  %i = tid 0
  %pi = load %p[%i]
  %sum = for %j = %zero to %n step %one carry (%s = %none) {
    %pj = load %p[%j]
    %d = sub %pj, %pi
    %dd = mul %d, %d
    %r2 = reduce_add %dd
    %r = add %r2, %soft
    %w = div %unit, %r
    %ws = splat %w : vec3<f32>
    %wd = mul %d, %ws
    %s2 = add %s, %wd
    yield %s2
  }
  store %f[%i], %sum
  return
}
)");
    auto p = numbers(37 * 3);
    std::vector<float> f(37 * 3);
    ArrayView positions = view(p, {37}), forces = view(f, {37});
    positions.strides[0] = forces.strides[0] = 12;
    kernel.run(37, positions, forces, std::int32_t{37});
    for (std::size_t i = 0; i < 37; ++i) {
        float s[3] = {0, 0, 0};
        for (std::size_t j = 0; j < 37; ++j) {
            float d[3];
            for (std::size_t c = 0; c < 3; ++c) d[c] = p[3 * j + c] - p[3 * i + c];
            float w = 1.0f / (std::fma(d[2], d[2], std::fma(d[1], d[1], d[0] * d[0])) + 0.5f);
            for (std::size_t c = 0; c < 3; ++c) s[c] = std::fma(d[c], w, s[c]);
        }
        for (std::size_t c = 0; c < 3; ++c) EXPECT_EQ(f[3 * i + c], s[c]);
    }
}

TEST_P(Control, range_from_the_thread_itself_stays_contiguous) {
    Compiled kernel = compile(R"(
kernel @window(%x: array<f32, 1>, %y: array<f32, 1>) tid 1 {
  %three = constant 3 : i32
  %one = constant 1 : i32
  %none = constant 0 : f32
  %i = tid 0
  %end = add %i, %three
  %sum = for %k = %i to %end step %one carry (%s = %none) {
    %v = load %x[%k]
    %t = add %s, %v
    yield %t
  }
  store %y[%i], %sum
  return
}
)");
    auto x = numbers(45);
    std::vector<float> y(42), expected(42);
    for (std::size_t i = 0; i < 41; ++i) expected[i] = x[i] + x[i + 1] + x[i + 2];
    kernel.run(41, view(x), view(y));
    EXPECT_EQ(y, expected);
    if (GetParam() > 1) {
        EXPECT_EQ(kernel.llvm_text().find("masked.gather"), std::string::npos);
    }
}

}  // namespace
}  // namespace weft::test

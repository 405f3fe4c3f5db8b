// 100 steps of particles in a field, and the gradient by their start. Blocks of 16 particles, a lane for each: the
// states of a block stay in the first cache, those of all steps are kept for the backward pass in the second.
#include <algorithm>

#include "../throughput/loops.h"

namespace {

constexpr int kSteps = 100, kBlock = 16;
constexpr float kDt = 0.02f, kDrag = 0.1f;

struct State {
    float x[3][kBlock], v[3][kBlock];
};

void load(const Vec3<float>* x, const Vec3<float>* v, int64_t first, State& s) {
    for (int i = 0; i < kBlock; ++i) {
        s.x[0][i] = x[first + i].x, s.x[1][i] = x[first + i].y, s.x[2][i] = x[first + i].z;
        s.v[0][i] = v[first + i].x, s.v[1][i] = v[first + i].y, s.v[2][i] = v[first + i].z;
    }
}

void store(const float (&from)[3][kBlock], int64_t first, Vec3<float>* to) {
    for (int i = 0; i < kBlock; ++i) to[first + i] = {from[0][i], from[1][i], from[2][i]};
}

inline void step(State& s) {
#pragma omp simd
    for (int i = 0; i < kBlock; ++i) {
        const float r2 = s.x[0][i] * s.x[0][i] + s.x[1][i] * s.x[1][i] + s.x[2][i] * s.x[2][i] + 0.1f;
        const float pull = -1.0f / r2;
        for (int c = 0; c < 3; ++c) {
            s.v[c][i] += kDt * (pull * s.x[c][i] - kDrag * s.v[c][i]);
            s.x[c][i] += kDt * s.v[c][i];
        }
    }
}

}  // namespace

BENCH_EXPORT void forward(int64_t n, const Vec3<float>* x, const Vec3<float>* v, Vec3<float>* end) {
#pragma omp parallel for schedule(static)
    for (int64_t first = 0; first < n; first += kBlock) {
        State s;
        load(x, v, first, s);
        for (int t = 0; t < kSteps; ++t) step(s);
        store(s.x, first, end);
    }
}

BENCH_EXPORT void both(int64_t n, const Vec3<float>* x, const Vec3<float>* v, const Vec3<float>* seed, Vec3<float>* end,
                       Vec3<float>* by_x, Vec3<float>* by_v) {
#pragma omp parallel for schedule(static)
    for (int64_t first = 0; first < n; first += kBlock) {
        State s, g;
        float kept[kSteps][3][kBlock];
        load(x, v, first, s);
        for (int t = 0; t < kSteps; ++t) {
            std::copy(&s.x[0][0], &s.x[0][0] + 3 * kBlock, &kept[t][0][0]);
            step(s);
        }
        store(s.x, first, end);
        load(seed, seed, first, g);
        std::fill(&g.v[0][0], &g.v[0][0] + 3 * kBlock, 0.0f);
        for (int t = kSteps - 1; t >= 0; --t) {
            const auto& p = kept[t];
#pragma omp simd
            for (int i = 0; i < kBlock; ++i) {
                const float inverse = 1.0f / (p[0][i] * p[0][i] + p[1][i] * p[1][i] + p[2][i] * p[2][i] + 0.1f);
                float along = 0.0f;
                for (int c = 0; c < 3; ++c) {
                    g.v[c][i] += kDt * g.x[c][i];
                    along += g.v[c][i] * p[c][i];
                }
                for (int c = 0; c < 3; ++c) {
                    g.x[c][i] -= kDt * inverse * (g.v[c][i] - 2.0f * p[c][i] * along * inverse);
                    g.v[c][i] *= 1.0f - kDt * kDrag;
                }
            }
        }
        store(g.x, first, by_x);
        store(g.v, first, by_v);
    }
}

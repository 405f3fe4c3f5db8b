// Trilinear samples of a NanoVDB grid by NanoVDB's own sampler, with an accessor for each thread.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wall"
#include <nanovdb/NanoVDB.h>
#include <nanovdb/util/SampleFromVoxels.h>
#pragma GCC diagnostic pop

#include "../throughput/loops.h"

// The bytes of a grid of floats, at a multiple of 32 bytes.
BENCH_EXPORT void sample(int64_t n, const uint8_t* grid, const float* place, float* result) {
    const auto* floats = reinterpret_cast<const nanovdb::NanoGrid<float>*>(grid);
#pragma omp parallel
    {
        const auto accessor = floats->getAccessor();
        const auto sampler = nanovdb::createSampler<1>(accessor);
#pragma omp for schedule(static)
        for (int64_t i = 0; i < n; ++i)
            result[i] = sampler(nanovdb::Vec3f(place[3 * i], place[3 * i + 1], place[3 * i + 2]));
    }
}

// loaded FILE DEVICE: the properties and the results of the kernel 'total' in the file on a device. Exits
// with 1 if the device cannot run it, which standard error explains.
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <vector>

#include "weft/program.h"

int main(int count, char** arguments) {
    if (count != 3) return 2;
    try {
        const weft::Program program = weft::Program::load(arguments[1]);
        const weft::Kernel total = program.kernel("total");
        std::printf("%s\n", total.load(arguments[2]).c_str());
        const weft::Array sum = weft::Array::zeros("int64", {1}, arguments[2]);
        const std::vector<std::int64_t> many(1000, 3);
        total.launch(1000, {weft::Array::of(many).to(arguments[2]), sum});
        std::printf("%lld\n", static_cast<long long>(*sum.to("cpu").data<std::int64_t>()));
        return 0;
    } catch (const std::invalid_argument& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}

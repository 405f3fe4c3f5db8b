// weft-opt: runs named passes over IR text and prints the result.
//
//     weft-opt [--passes=inline,simplify] [--no-names] file.ir      prints what the passes make of the file
//     weft-opt --check file.ir...      compares that with what the file says after "// ==== expect"; 1 where they
//     differ weft-opt --bless file.ir...      writes it there
//
// A test file names its passes in its first line, "// passes: inline,simplify", which --passes overrides. `uniformity`
// prints what every value looks like across lanes, as comments. `adjoint` takes every array to have a gradient,
// `adjoint:4` keeps the state of at most 4 iterations of a loop; `custom_derivatives` inlines all calls but those of
// functions with derivatives of their own. `lanes:4` makes blocks of 4 lanes, `lanes:4:10` of a launch of 10 threads.
// `own:overlap` is `own` where arrays may overlap.
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "support/error.h"
#include "transform/adjoint/adjoint.h"
#include "transform/adjoint/atomic_results.h"
#include "transform/adjoint/functions.h"
#include "transform/adjoint/numbers.h"
#include "transform/analysis/uniformity.h"
#include "transform/inline/inline.h"
#include "transform/jvp/jvp.h"
#include "transform/passes/follow_grid_order.h"
#include "transform/passes/nan_check.h"
#include "transform/passes/negative_indices.h"
#include "transform/passes/neighbour_rows.h"
#include "transform/passes/uncontended_atomics.h"
#include "transform/simplify/simplify.h"
#include "transform/tiles/lower_lanes.h"
#include "transform/tiles/lower_tiles.h"
#include "transform/vectors_in_memory/late_loads.h"
#include "transform/vectors_in_memory/vectors_in_memory.h"

namespace {

using namespace weft;

constexpr std::string_view kExpect = "// ==== expect\n";
constexpr std::string_view kPasses = "// passes:";

struct Options {
    enum class Mode { print, check, bless } mode = Mode::print;
    std::string passes;
    bool names = true;
    std::vector<std::string> files;
};

struct TestFile {
    std::string input;
    std::string expected;
};

std::vector<std::string> split(std::string_view text, char at) {
    std::vector<std::string> parts;
    std::string part;
    for (const char c : text) {
        if (c == at) {
            parts.push_back(std::move(part));
            part.clear();
        } else if (c != ' ' && c != '\r') {
            part += c;
        }
    }
    if (!part.empty()) parts.push_back(std::move(part));
    return parts;
}

std::string read(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    if (!in) throw UsageError("weft-opt", "cannot read '" + path + "'");
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
}

TestFile divide(const std::string& text) {
    const std::size_t at = text.find(kExpect);
    if (at == std::string::npos) return {text, {}};
    return {text.substr(0, at), text.substr(at + kExpect.size())};
}

std::string passes_of(const std::string& input) {
    if (!input.starts_with(kPasses)) return {};
    return input.substr(kPasses.size(), input.find('\n') - kPasses.size());
}

std::string shape_name(const transform::LaneShape& shape) {
    using Kind = transform::LaneShape::Kind;
    switch (shape.kind) {
        case Kind::uniform:
            return "uniform";
        case Kind::linear:
            return "linear(" + std::to_string(shape.stride) + ")";
        case Kind::varying:
            return shape.mostly_contiguous ? "varying, mostly contiguous" : "varying";
    }
    return "?";
}

// The shapes of all values in the order of the text and under the names they have there, then the remarks, as comments
// below the function.
class UniformityPrinter {
public:
    explicit UniformityPrinter(const ir::Function& kernel) : found_(transform::find_uniformity(kernel)) {
        out_ = "// '" + kernel.name + (found_.runs_in_lanes ? "' in lanes\n" : "' one thread at a time\n");
        region(kernel.body);
        for (const auto& remark : found_.remarks) out_ += "//   remark: " + remark.text + "\n";
    }
    std::string take() { return std::move(out_); }

private:
    void region(const ir::Region& region) {
        for (const ir::Value* argument : region.arguments) value(*argument);
        for (const ir::Operation* operation : region.operations) {
            for (const ir::Value* result : operation->results) value(*result);
            for (const ir::Region* inner : operation->regions) this->region(*inner);
        }
    }
    void value(const ir::Value& value) {
        std::string label = value.name.empty() ? std::to_string(position_) : value.name;
        if (!value.name.empty() && !used_.insert(label).second) label += "." + std::to_string(position_);
        out_ += "//   %" + label + ": " + shape_name(found_.shape(&value)) + "\n";
        ++position_;
    }

    transform::Uniformity found_;
    std::string out_;
    std::set<std::string> used_;
    int position_ = 0;
};

// Runs the passes and prints. Each pass leaves a module that holds together.
std::string run(const std::string& input, const std::string& passes, bool names) {
    const std::unique_ptr<ir::Module> module = ir::parse(input);
    std::string comments;
    for (const std::string& pass : split(passes, ',')) {
        if (pass == "inline") {
            transform::inline_calls(*module);
        } else if (pass == "simplify") {
            for (const auto& function : module->functions) transform::simplify(*function);
        } else if (pass == "custom_derivatives") {
            transform::write_gradients(*module);
            transform::prepare_custom_derivatives(*module);
            transform::inline_calls(*module, transform::Calls::custom_derivatives);
        } else if (pass == "functions") {
            transform::write_gradients(*module);
        } else if (pass == "negative_indices") {
            for (const auto& function : module->functions) transform::drop_negative_indices(*function);
        } else if (pass == "gradients") {
            for (const auto& function : module->functions)
                if (function->is_kernel) transform::share_gradients(*function);
        } else if (pass == "tiles") {
            transform::lower_tiles(*module);
        } else if (pass == "local") {
            for (const auto& function : module->functions) transform::split_local_atomics(*function);
        } else if (pass == "uncontended" || pass == "uncontended:overlap") {
            for (const auto& function : module->functions)
                transform::split_uncontended_atomics(*function, /*noalias=*/pass == "uncontended",
                                                     transform::Uncontended::all);
        } else if (pass == "atomic_results") {
            for (auto& function : module->functions)
                if (function->is_kernel)
                    function = transform::with_atomic_results(*function, transform::AtomicResults::written);
        } else if (pass == "grid_order") {
            for (const auto& function : module->functions)
                if (function->is_kernel) transform::follow_grid_order(*function, /*sorts=*/true);
        } else if (pass == "neighbour_rows" || pass == "neighbour_rows:counted") {
            const auto which =
                pass == "neighbour_rows" ? transform::NeighbourRows::all : transform::NeighbourRows::counted;
            for (const auto& function : module->functions)
                if (function->is_kernel) transform::loop_over_neighbour_rows(*function, which);
        } else if (pass == "nan_check") {
            for (const auto& function : module->functions)
                if (function->is_kernel) transform::insert_nan_checks(*function);
        } else if (pass == "vectors_in_memory") {
            for (const auto& function : module->functions) transform::keep_vectors_in_memory(*function);
        } else if (pass == "late_loads") {
            for (const auto& function : module->functions) transform::delay_component_loads(*function);
        } else if (pass == "numbers") {
            for (const auto& function : module->functions)
                if (function->is_kernel)
                    transform::read_numbers_from_memory(*function,
                                                        std::vector<bool>(function->parameters().size(), true));
        } else if (pass == "adjoint" || pass.starts_with("adjoint:")) {
            for (auto& function : module->functions) {
                if (!function->is_kernel) continue;
                transform::AdjointOptions options;
                options.gradients.assign(function->parameters().size() - function->implicit_parameters.size(),
                                         transform::Gradient::used);
                if (pass != "adjoint") options.stack_slots = std::atoi(pass.c_str() + std::strlen("adjoint:"));
                function = transform::adjoint(*function, options);
            }
        } else if (pass == "jvp") {
            for (auto& function : module->functions) {
                transform::JvpOptions options;
                options.active.assign(function->parameters().size() - function->implicit_parameters.size(), true);
                function = transform::jvp(*function, options);
            }
        } else if (pass == "tiles") {
            transform::lower_tiles(*module);
        } else if (pass.starts_with("lanes:")) {
            const std::vector<std::string> numbers = split(pass, ':');
            transform::LaneOptions options{.lanes = std::atoi(numbers.at(1).c_str())};
            if (numbers.size() > 2) options.threads = std::atoi(numbers[2].c_str());
            transform::lower_lanes(*module, options);
        } else if (pass == "uniformity") {
            for (const auto& function : module->functions)
                if (function->is_kernel) comments += UniformityPrinter(*function).take();
        } else {
            throw UsageError("weft-opt", "there is no pass '" + pass +
                                             "'; there are functions, custom_derivatives, inline, local, simplify, "
                                             "negative_indices, uncontended, "
                                             "uncontended:overlap, atomic_results, numbers, adjoint, gradients, jvp, "
                                             "grid_order, neighbour_rows, "
                                             "neighbour_rows:counted, nan_check, vectors_in_memory, "
                                             "late_loads and uniformity");
            throw UsageError("weft-opt",
                             "there is no pass '" + pass +
                                 "'; there are functions, custom_derivatives, inline, local, simplify, "
                                 "negative_indices, uncontended, "
                                 "uncontended:overlap, atomic_results, numbers, adjoint, gradients, jvp, "
                                 "grid_order, neighbour_rows, "
                                 "neighbour_rows:counted, nan_check, vectors_in_memory, tiles, lanes:4, lanes:4:10 and "
                                 "uniformity");
        }
        ir::verify(*module);
    }
    return ir::print(*module, names) + comments;
}

// The first line where two texts differ, for a person who looks at a failed test.
std::string difference(const std::string& expected, const std::string& found) {
    std::istringstream a(expected), b(found);
    std::string x, y;
    for (int line = 1;; ++line) {
        const bool more_a = static_cast<bool>(std::getline(a, x)), more_b = static_cast<bool>(std::getline(b, y));
        if (!more_a && !more_b) return "they differ in the end of the last line";
        if (more_a && more_b && x == y) continue;
        return "line " + std::to_string(line) + "\n  expected: " + (more_a ? x : "(nothing)") +
               "\n  found:    " + (more_b ? y : "(nothing)");
    }
}

// True where the file is as it should be.
bool process(const std::string& path, const Options& options) {
    const TestFile file = divide(read(path));
    const std::string passes = options.passes.empty() ? passes_of(file.input) : options.passes;
    const std::string output = run(file.input, passes, options.names);
    switch (options.mode) {
        case Options::Mode::print:
            std::cout << output;
            return true;
        case Options::Mode::bless: {
            std::ofstream out(path, std::ios::binary);
            out << file.input << kExpect << output;
            if (!out.flush()) throw UsageError("weft-opt", "cannot write '" + path + "'");
            return true;
        }
        case Options::Mode::check:
            break;
    }
    if (file.expected.empty())
        throw UsageError("weft-opt", "'" + path + "' has no '// ==== expect' part; --bless writes it");
    if (output == file.expected) return true;
    std::cerr << path << ": " << difference(file.expected, output) << "\n---- found ----\n" << output;
    return false;
}

Options parse_options(int count, char** arguments) {
    Options options;
    for (int i = 1; i < count; ++i) {
        const std::string argument = arguments[i];
        if (argument.starts_with("--passes=")) {
            options.passes = argument.substr(9);
        } else if (argument == "--check") {
            options.mode = Options::Mode::check;
        } else if (argument == "--bless") {
            options.mode = Options::Mode::bless;
        } else if (argument == "--no-names") {
            options.names = false;
        } else if (argument.starts_with("--")) {
            throw UsageError("weft-opt",
                             "unknown option '" + argument + "'; there are --passes=, --check, --bless and --no-names");
        } else {
            options.files.push_back(argument);
        }
    }
    if (options.files.empty())
        throw UsageError("weft-opt", "no file given: weft-opt [--passes=inline,simplify] file.ir");
    return options;
}

}  // namespace

int main(int count, char** arguments) {
    try {
        const Options options = parse_options(count, arguments);
        bool good = true;
        for (const std::string& path : options.files) {
            try {
                good &= process(path, options);
            } catch (const Error& error) {
                std::cerr << path << ": " << error.what() << "\n";
                good = false;
            }
        }
        return good ? 0 : 1;
    } catch (const std::exception& error) {
        std::cerr << error.what() << "\n";
        return 2;
    }
}

// The reader: its errors for wrong texts, and that no text makes it crash.
#include <random>

#include "harness.h"
#include "ptx/token.h"

namespace weft::emulator {

namespace {

std::string error_of(const std::string& text) {
    try {
        load_program(text, 0);
    } catch (const ptx::Error& error) {
        return error.what();
    }
    return "";
}

void expect_error(const std::string& text, const std::string& part) {
    const std::string error = error_of(text);
    EXPECT_NE(error.find(part), std::string::npos) << part << " is not in: " << error;
}

TEST(EmulatedReader, says_which_line_and_text) {
    expect_error("", "a module begins with .version");
    expect_error(".version 8.0\n.target sm_80\n.address_size 32\n", "line 3: addresses have 64 bits");
    expect_error(".version 8.0\n.target gfx90\n", "expected a target such as sm_80");
    expect_error(kernel_text("add.s32 %r0, %r1;"), "line 8: unknown instruction 'add.s32' with 2 operands in 'kernel'");
    expect_error(kernel_text("add.s32 %r0, %r1, %q9; ret;"), "unknown register '%q9'");
    expect_error(kernel_text("add.s32 %r0, %r1, %d0; ret;"),
                 "expected a register of 32 bits as an operand, found one of 64");
    expect_error(kernel_text("add.s32 %d0, %r1, %r2; ret;"),
                 "expected a register of 32 bits as the result, found one of 64");
    expect_error(kernel_text("add.f32 %r0, %r1, 1; ret;"), "expected a float such as 0f3F800000");
    expect_error(kernel_text("bra NOWHERE;"), "unknown label 'NOWHERE'");
    expect_error(kernel_text("A: A: ret;"), "the label 'A' stands twice");
    expect_error(kernel_text("mov.b64 %d0, nothing; ret;"), "unknown symbol 'nothing'");
    expect_error(kernel_text("ld.global.b32 %r0, %d0; ret;"), "expected an address such as [%rd1+8]");
    expect_error(kernel_text("ld.magic.b32 %r0, [%d0]; ret;"), "unknown word '.magic'");
    expect_error(kernel_text("ld.global.v2.b32 %r0, [%d0]; ret;"), "expected 2 registers");
    expect_error(kernel_text("{ .param .b32 p; call missing, (p); } ret;"), "unknown function 'missing'");
    expect_error(kernel_text("{ .param .b32 p; call f, (p); } ret;", ".func f(.param .b64 x) { ret; }"),
                 "have other sizes");
    expect_error(kernel_text("@%r0 ret;"), "expected a predicate");
    expect_error(kernel_text("ret"), "expected an operand; found '}'");
    expect_error(".version 8.0\n.target sm_80\n.global .b8 a[4] = {1, 2, 3, 4, 5};",
                 "more initial values than elements");
    expect_error(".version 8.0\n.target sm_80\n/* no end", "a comment begins with /*");
    expect_error(".version 8.0\n.target sm_80\n.entry k(", "expected .param; found the end of the text");
}

TEST(EmulatedReader, takes_what_compilers_write) {
    for (const char* name : {"kernels.ptx", "saxpy.ptx"}) EXPECT_EQ(error_of(ptx_file(name)), "") << name;
}

// Characters and words are exchanged, left out and doubled; texts that still load are run, with a limit.
TEST(EmulatedReader, mutants_do_not_crash) {
    const std::string texts[] = {
        ptx_file("kernels.ptx"), ptx_file("saxpy.ptx"),
        kernel_text("ld.param.b64 %d0, [a]; mov.u32 %r0, %tid.x; setp.lt.and.u32 %p0|%p1, %r0, 4, !%p2;\n"
                    "@%p0 bra L; shfl.sync.idx.b32 %r1|%p1, %r0, 2, 31, -1; L: bar.sync 0;\n"
                    "mov.b64 {%r3, %r4}, %d0; atom.global.add.f32 %r5, [%d0+4], 0f3F800000; cvt.rn.f16.f32 %h0, %r5;\n"
                    "st.global.v2.b32 [%d0], {%r3, %r4}; ret;")};
    std::mt19937_64 random(7);
    const std::string signs = "{}[]()<>,;:+-!@|%._0123456789abcfrsux \"\n";
    int loaded = 0, refused = 0;
    for (int round = 0; round < 1500; ++round) {
        std::string text = texts[random() % 3];
        if (random() % 16 == 0) text = text.substr(0, random() % text.size());
        for (uint64_t changes = 1 + random() % 2; changes > 0 && text.size() > 20; --changes) {
            const size_t at = random() % (text.size() - 10), length = 1 + random() % 8,
                         from = random() % (text.size() - 10);
            switch (random() % 7) {
                case 0:
                    text[at] = signs[random() % signs.size()];
                    break;
                case 1:
                    text.erase(at, length);
                    break;
                case 2:
                    text.insert(at, text.substr(from, length));
                    break;
                case 3:
                    text.replace(at, length, text.substr(from, length));
                    break;
                default:
                    // a digit by another: registers, offsets, numbers
                    if (const size_t digit = text.find_first_of("0123456789", at); digit != std::string::npos) {
                        text[digit] = char('0' + random() % 10);
                    }
            }
        }
        try {
            const std::unique_ptr<Program> program = load_program(text, 0);
            ++loaded;
            for (const CodeFunction& function : program->functions) {
                if (!function.source->entry || !function.source->defined || function.parameter_bytes > 4096 ||
                    function.frame_size > 1 << 20 || function.local_size > 65536 || function.shared_size > 49152) {
                    continue;
                }
                Launch launch;
                launch.program = program.get();
                launch.kernel = &function;
                launch.threads[0] = 32;
                launch.most_instructions = 20000;
                launch.parameters.resize(function.parameter_bytes);
                launch.number = AddressSpace::instance().next_launch();
                run_launch(launch);
            }
        } catch (const ptx::Error&) {
            ++refused;
        } catch (const std::bad_alloc&) {
            ++refused;
        }
    }
    EXPECT_GT(loaded, 150);
    EXPECT_GT(refused, 500);
}

}  // namespace

}  // namespace weft::emulator

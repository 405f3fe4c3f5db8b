"""The PTX version and the architecture that an instruction needs: the emulated driver's table beside ptxas."""

import ctypes
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest
from cuda_tools import PTXAS, needs_ptxas

pytestmark = needs_ptxas

OLDEST = (63, 75)  # of all that ptxas takes
# Versions of ptxas do not agree: 12.9 takes it for sm_80, 13.0 from sm_90 on.
DISPUTED = {"cvt.ftz.f32.bf16"}
# Instructions that are no rows of the emulated device's table of opcodes.
STATEMENTS = """
ld.global.v8.b32 {%r1,%r2,%r3,%r4,%r5,%r6,%r7,%r8}, [%d1];
ld.global.nc.v4.b64 {%d2,%d3,%d4,%d5}, [%d1];
st.global.v4.b64 [%d1], {%d2,%d3,%d4,%d5};
ld.global.v4.b32 {%r1,%r2,%r3,%r4}, [%d1];
ld.global.L2::128B.b32 %r1, [%d1];
ld.global.nc.L1::no_allocate.L2::128B.b32 %r1, [%d1];
ld.global.L1::evict_last.b32 %r1, [%d1];
ld.acquire.gpu.b32 %r1, [%d1];
ld.acquire.cluster.b32 %r1, [%d1];
ld.mmio.relaxed.sys.global.b32 %r1, [%d1];
ld.shared::cta.b32 %r1, [%r2];
ld.shared::cluster.b32 %r1, [%r2];
ldu.global.b32 %r1, [%d1];
atom.global.add.noftz.f16x2 %r1, [%d1], %r2;
atom.global.add.noftz.bf16 %h1, [%d1], %h2;
atom.global.add.noftz.bf16x2 %r1, [%d1], %r2;
atom.global.add.f64 %f1, [%d1], %f2;
atom.global.cas.b16 %h1, [%d1], %h2, %h3;
atom.acq_rel.gpu.global.add.u32 %r1, [%d1], %r2;
atom.relaxed.cluster.global.add.u32 %r1, [%d1], %r2;
red.global.add.v4.f32 [%d1], {%g1,%g2,%g3,%g4};
red.global.add.f32 [%d1], %g1;
fence.acq_rel.gpu;
fence.acq_rel.cluster;
fence.proxy.async;
fence.mbarrier_init.release.cluster;
griddepcontrol.wait;
griddepcontrol.launch_dependents;
redux.sync.add.s32 %r1, %r2, -1;
elect.sync %r1|%p1, -1;
barrier.cluster.arrive;
barrier.cta.sync 0;
bar.warp.sync -1;
mapa.shared::cluster.u32 %r1, %r2, %r3;
cp.async.ca.shared.global [%r1], [%d1], 16;
cp.async.commit_group;
cp.async.wait_all;
cp.async.bulk.commit_group;
mbarrier.init.shared.b64 [%r1], %r2;
mbarrier.try_wait.shared.b64 %p1, [%r1], %d2;
mbarrier.arrive.expect_tx.shared.b64 _, [%r1], %r2;
ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r1,%r2,%r3,%r4}, [%r5];
stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r5], {%r1,%r2,%r3,%r4};
movmatrix.sync.aligned.m8n8.trans.b16 %r1, %r2;
mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%g1,%g2,%g3,%g4},{%r1,%r2},{%r3},{%g1,%g2,%g3,%g4};
mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%g1,%g2,%g3,%g4},{%r1,%r2,%r3,%r4},{%r5,%r6},{%g1,%g2,%g3,%g4};
mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%g1,%g2,%g3,%g4},{%r1,%r2,%r3,%r4},{%r5,%r6},{%g1,%g2,%g3,%g4};
mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%g1,%g2,%g3,%g4},{%r1,%r2,%r3,%r4},{%r5,%r6},{%g1,%g2,%g3,%g4};
mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 {%g1,%g2,%g3,%g4},{%r1,%r2},{%r3},{%g1,%g2,%g3,%g4};
mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%f1,%f2},{%f3},{%f4},{%f1,%f2};
mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%f1,%f2,%f3,%f4},{%f3,%f4},{%f5},{%f1,%f2,%f3,%f4};
cvt.rna.tf32.f32 %r1, %g1;
cvt.rn.tf32.f32 %r1, %g1;
prefetch.global.L2 [%d1];
prefetch.global.L2::evict_last [%d1];
applypriority.global.L2::evict_normal [%d1], 128;
discard.global.L2 [%d1], 128;
nanosleep.u32 100;
activemask.b32 %r1;
match.any.sync.b32 %r1, %r2, -1;
isspacep.shared::cluster %p1, %d1;
st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r1], %r2, [%r3];
multimem.ld_reduce.global.add.f32 %g1, [%d1];
min.s32 %r1, %r2, %r3;
min.relu.s32 %r1, %r2, %r3;
min.s16x2 %r1, %r2, %r3;
add.s16x2 %r1, %r2, %r3;
max.f32 %g1, %g2, %g3, %g4;
szext.wrap.s32 %r1, %r2, %r3;
bmsk.clamp.b32 %r1, %r2, %r3;
dp4a.s32.s32 %r1, %r2, %r3, %r4;
stacksave.u64 %d1;
""".strip().splitlines()
REGISTERS = """.reg .pred %p<4>; .reg .b16 %h<9>; .reg .b32 %r<20>; .reg .b64 %d<20>;
.reg .f32 %g<9>; .reg .f64 %f<9>;"""
HEADER = f".version {OLDEST[0] // 10}.{OLDEST[0] % 10}\n.target sm_{OLDEST[1]}\n.address_size 64\n"


@pytest.fixture(scope="module")
def needs(emulated):
    """A function: opcode and number of operands -> (PTX version, architecture) of the emulated driver."""
    ask = emulated.library.weftEmulatedRequirement
    ask.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int]

    def requirement(opcode, operands):
        found = ask(opcode.encode(), operands, OLDEST[0])
        return max(found // 1000, OLDEST[0]), max(found % 1000, OLDEST[1])

    return requirement


def said_of(text, folder):
    """(PTX version, architecture) that ptxas asks for, and its other errors, by line."""
    file = folder / f"{abs(hash(text))}.ptx"
    file.write_text(text)
    done = subprocess.run(
        [PTXAS, f"--gpu-name=sm_{OLDEST[1]}", "-o", "/dev/null", file], capture_output=True, text=True
    )
    found, others = {}, {}
    for line, message in re.findall(r"line (\d+); error\s*: (.*)", done.stderr):
        version, arch = found.get(int(line), OLDEST)
        if asked := re.search(r"requires \.target sm_(\d+)", message):
            arch = max(arch, int(asked[1]))
        elif asked := re.search(r"requires PTX ISA \.version (\d+)\.(\d+)", message):
            version = max(version, 10 * int(asked[1]) + int(asked[2]))
        else:
            others.setdefault(int(line), []).append(message)
        found[int(line)] = (version, arch)
    return found, others


def test_each_opcode_needs_what_ptxas_says(check, emulated, needs, tmp_path):
    opcodes = check.opcodes_of(emulated)
    names = list(opcodes)
    compared, wrong = 0, []
    for first in range(0, len(names), check.BATCH):
        text, of_line = HEADER, {}
        for opcode in names[first : first + check.BATCH]:
            begin = text.count("\n")
            text += check.kernel_text(f"k{begin}", opcode, opcodes[opcode])
            of_line |= {line: opcode for line in range(begin + 1, text.count("\n") + 1)}
        found, others = said_of(text, tmp_path)
        # a ptxas of CUDA 12 does not know some words of CUDA 13
        unknown = {of_line[line] for line in others}
        expected = dict.fromkeys(names[first : first + check.BATCH], OLDEST)
        for line, (version, arch) in found.items():
            known = expected[of_line[line]]
            expected[of_line[line]] = (max(known[0], version), max(known[1], arch))
        for opcode, asked in expected.items():
            if opcode in unknown | DISPUTED:
                continue
            compared += 1
            if needs(opcode, len(opcodes[opcode])) != asked:
                wrong.append((opcode, needs(opcode, len(opcodes[opcode])), asked))
    assert wrong == []
    assert compared > 1400


def test_each_other_instruction_needs_what_ptxas_says(needs, tmp_path):
    def asked(statement):
        text = f"{HEADER}.visible .entry k() {{ {REGISTERS}\n{statement}\nret; }}\n"
        found, others = said_of(text, tmp_path)
        return max(found.values(), default=OLDEST), others

    with ThreadPoolExecutor(2) as pool:
        answers = dict(zip(STATEMENTS, pool.map(asked, STATEMENTS), strict=True))
    compared = 0
    for statement, (expected, others) in answers.items():
        if others:  # this ptxas does not know it
            continue
        opcode, _, operands = statement.rstrip(";").partition(" ")
        count = 0 if not operands else len(re.sub(r"\{[^}]*\}", "x", operands).split(","))
        assert needs(opcode, count) == expected, statement
        compared += 1
    assert compared > 60

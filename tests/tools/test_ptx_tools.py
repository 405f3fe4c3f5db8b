"""The tools that look at the texts of kernels for CUDA devices: a table of registers, and changes of instructions."""

import shutil

import pytest

TEXT = """// kernel first
.version 7.8
.target sm_90
.address_size 64
.visible .entry weft_0_first(.param .u64 x)
{
\t.reg .b32 \t%r<4>;
\t.reg .b64 \t%rd<4>;
\tld.param.b64 \t%rd1, [x];
\tmov.u32 \t%r1, %nctaid.x;
\tmov.u32 \t%r2, %tid.x;
\tmul.wide.u32 \t%rd2, %r1, 4;
\tld.global.b32 \t%r3, [%rd1];
\tadd.s32 \t%r3, %r3, %r2;
\tst.global.b32 \t[%rd1], %r3;
\tadd.s64 \t%rd1, %rd1, %rd2;
\tret;
}
"""


# ---- tools/gpu/assemble_kernels.py ----


@pytest.fixture
def assemble(tool, tmp_path, monkeypatch, capsys):
    """Runs the tool with a table of its own, on a stand-in for ptxas; returns its exit code and what it printed."""
    module = tool("assemble_kernels")
    monkeypatch.setattr(module, "TABLE", tmp_path / "table.tsv")
    monkeypatch.setattr(module, "find_ptxas", lambda: ("ptxas", "12.9"))

    def run(numbers, *options):
        folder = tmp_path / "texts"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for name in numbers:
            rest = "// more\n" * (150_000 if name.startswith("large") else 0)
            (folder / f"{name}.ptx").write_text(TEXT.replace("first", name) + rest)
        results = {name: (None, said) if isinstance(said, str) else (said, None) for name, said in numbers.items()}
        monkeypatch.setattr(module, "assemble", lambda ptxas, text: results[text.kernels[0]])
        monkeypatch.setattr("sys.argv", ["assemble_kernels.py", str(folder), *options])
        code = module.main()
        return code, "".join(capsys.readouterr())

    run.rows = lambda: [name for name, _ in module.read_table()[1]]
    return run


def test_what_a_kernel_needs_may_not_grow_unseen(assemble):
    assert assemble({"first": (80, 0, 0), "second": (40, 16, 0)}, "--update")[0] == 0
    assert assemble({"first": (80, 0, 0), "second": (32, 16, 0)})[0] == 0
    code, text = assemble({"first": (81, 0, 0), "second": (40, 16, 24)})
    assert code == 1 and "first (sm_90) needs more than in table.tsv: registers 80 -> 81\n" in text
    assert "second (sm_90) needs more than in table.tsv: spilled bytes 0 -> 24\n" in text and "--update" in text
    assert assemble({"first": (81, 0, 0), "second": (40, 16, 24)}, "--update")[0] == 0
    assert assemble({"first": (81, 0, 0), "second": (40, 16, 24)})[0] == 0


def test_a_kernel_without_a_row_is_a_failure_where_all_are_checked_and_it_needs_much(assemble, tool):
    is_chosen = tool("assemble_kernels").is_chosen
    one, other = [name for name in map("kernel{}".format, range(100)) if is_chosen(name, 10)][:2]
    assemble({one: (80, 0, 0)}, "--update")
    code, text = assemble({one: (80, 0, 0), other: (8, 8, 0)}, "--share", "10")
    assert code == 0 and "2 kernels, 1 new in the table" in text
    code, text = assemble({one: (80, 0, 0), other: (64, 8, 0)})
    assert code == 1 and f"{other} (sm_90) needs more than in table.tsv: stack bytes 0 -> 8\n" in text
    assert assemble({one: (80, 0, 0), other: (64, 0, 0)})[0] == 0


def test_the_table_has_the_kernels_that_need_more_than_usual(assemble):
    assemble({"first": (64, 0, 0), "second": (65, 0, 0), "third": (8, 8, 0)}, "--update")
    assert assemble.rows() == ["second", "third"]
    assemble({"first": (64, 0, 0), "second": (8, 0, 0), "third": (8, 0, 8)}, "--update")
    assert assemble.rows() == ["third"]


def test_the_table_of_the_repository_has_such_rows_only(tool):
    module = tool("assemble_kernels")
    _, rows = module.read_table()
    assert len(rows) > 100 and all(module.worse(module.USUAL, numbers) for numbers in rows.values())


def test_a_kernel_that_ptxas_refuses_is_a_failure(assemble):
    code, text = assemble({"first": "line 7: Arguments mismatch"})
    assert code == 1 and "first (sm_90, first.ptx): line 7: Arguments mismatch" in text


def test_texts_of_more_than_a_megabyte_are_taken_where_that_is_asked_for(assemble):
    code, text = assemble({"first": (8, 0, 0), "large": (255, 800, 90)}, "--update")
    assert code == 0 and "took 1 of 1 texts; 1 larger than 1 MB were left out; 1 kernels" in text
    code, text = assemble({"first": (8, 0, 0), "large": (255, 800, 90)}, "--large", "--update")
    assert code == 0 and "took 2 of 2 texts; 0 larger than 1 MB were left out; 2 kernels, 1 new in the table" in text
    code, text = assemble({"large": (255, 900, 90)}, "--large")
    assert code == 1 and "large (sm_90) needs more than in table.tsv: stack bytes 800 -> 900" in text


PLACES = """
import warp as wp
def test_something():
    @wp.kernel
    def k(x: wp.array[int]):
        x[0] = 1
@wp.kernel
def alone(x: wp.array[int]):
    x[0] = 1
"""


@pytest.mark.parametrize(
    "kernel, location, row",
    [
        ("k", "1 6 1", "python/test_x.py:test_something k"),
        ("k", "2 90 3, function_name $L__info_string0, inlined_at 1 6 1", "python/test_x.py:test_something k"),
        ("alone", "1 9 1", "python/test_x.py alone"),
    ],
)
def test_kernels_of_one_name_are_told_apart_by_where_they_stand(tool, tmp_path, kernel, location, row):
    file = tmp_path / "tests" / "python" / "test_x.py"
    file.parent.mkdir(parents=True)
    file.write_text(PLACES)
    path = tmp_path / "x.ptx"
    lines = f'\t.loc\t{location}\n\tret;\n}}\n\t.file\t1 "{file}"\n\t.file\t2 "/elsewhere/other.py"\n'
    path.write_text(TEXT.replace("first", kernel).replace("\tret;\n}\n", lines))
    assert tool("assemble_kernels").Text.read(path).kernels == [row]
    path.write_text(path.read_text().replace("// kernel", "// adjoint of kernel"))
    assert tool("assemble_kernels").Text.read(path).kernels == [row.replace(kernel, f"adjoint of kernel {kernel}")]


def test_a_file_that_is_no_kept_text_is_refused(tool, tmp_path):
    module = tool("assemble_kernels")
    path = tmp_path / "x.ptx"
    path.write_text(TEXT.replace("// kernel first\n", ""))
    with pytest.raises(module.ToolError, match="names no kernel or no target"):
        module.Text.read(path)


# ---- tools/mutation/mutate_ptx.py ----


@pytest.mark.parametrize(
    "before, after",
    [
        ("add.s32 %r1, %r2, %r3;", {"sub.s32 %r1, %r2, %r3;"}),
        ("sub.rn.f32 %r1, %r2, %r3;", {"add.rn.f32 %r1, %r2, %r3;", "sub.rn.f32 %r1, %r3, %r2;"}),
        ("fma.rn.f64 %rd1, %rd2, %rd3, %rd4;", {"fma.rn.f64 %rd1, %rd2, %rd4, %rd3;"}),
        ("setp.lt.s64 %p1, %rd1, %rd2;", {"setp.le.s64 %p1, %rd1, %rd2;", "setp.ge.s64 %p1, %rd1, %rd2;"}),
        ("@%p1 bra $L1;", {"@!%p1 bra $L1;"}),
        ("ld.global.b32 %r1, [%rd1+8];", {"ld.global.b32 %r1, [%rd1+12];"}),
        ("st.global.b64 [%rd1], %rd2;", {"st.global.b64 [%rd1+8], %rd2;", "// left out"}),
        ("shl.b64 %rd1, %rd2, 2;", {"shl.b64 %rd1, %rd2, 3;"}),
        ("add.rn.f32 %r1, %r2, 0f3F800000;", {"sub.rn.f32 %r1, %r2, 0f3F800000;", "add.rn.f32 %r1, %r2, 0f3FC00000;"}),
        ("mov.u32 %r1, %tid.x;", set()),
        ("ret;", set()),
    ],
)
def test_changes_of_an_instruction(tool, before, after):
    found = {" ".join(changed.split()) for _, changed in tool("mutate_ptx").changes("\t" + before)}
    assert found == after


QUOTIENT = """// kernel quotient
.visible .entry weft_0_quotient(.param .u64 x)
{
\tld.global.b32 \t%r1, [%rd1];
\tsetp.eq.b32 \t%p1, %r1, 0;
\tselp.b32 \t%r2, 1, %r1, %p1;
\tdiv.s32 \t%r3, %r1, %r2;
\tselp.b32 \t%r4, 0, %r3, %p1;
\tst.global.b32 \t[%rd1], %r4;
\tfma.rn.f32 \t%r5, %r4, %r1, %r1;
\tst.global.b32 \t[%rd1+4], %r5;
\tret;
}
"""


@pytest.mark.parametrize(
    "before, after, is_changed",
    [
        ("", "", False),
        ("selp.b32 \t%r4, 0, %r3, %p1;", "selp.b32 \t%r4, 0, %r3, %p2;", True),  # by another condition
        ("[%rd1+4], %r5;", "[%rd1+4], %r3;", True),  # the quotient goes elsewhere too
        ("\tret;", "\tadd.s32 \t%r2, %r2, 1;\n\tret;", True),  # as does the divisor
        ("selp.b32 \t%r2, 1,", "selp.b32 \t%r2, 0,", True),
    ],
)
def test_a_divisor_whose_quotient_does_not_count_keeps_its_number(tool, tmp_path, before, after, is_changed):
    path = tmp_path / "x.ptx"
    assert before in QUOTIENT
    path.write_text(QUOTIENT.replace(before, after))
    mutants = tool("mutate_ptx").mutants_of(path, "a test")
    assert any(m.kind == "constant" and "selp.b32 %r2," in m.key for m in mutants) == is_changed
    assert any(m.kind == "operands" and "selp.b32 %r2," in m.key for m in mutants)
    assert not any("fma" in m.before for m in mutants)  # its last two operands are one


SQUARE = """// kernel square
.visible .entry weft_0_square(.param .u64 x)
{
\tsub.rn.f32 \t%r3, %r1, %r2;
\tfma.rn.f32 \t%r4, %r3, %r3, %r1;
\tneg.f32 \t%r5, %r4;
\tmul.rn.f32 \t%r6, %r5, %r5;
\tst.global.b32 \t[%rd1], %r6;
}
"""


@pytest.mark.parametrize(
    "after, changed",
    [
        ("%r6;", {"add.rn.f32 %r3,"}),
        ("%r3;", {"add.rn.f32 %r3,", "sub.rn.f32 %r3,"}),  # the difference is stored as well
        ("%r5;", {"add.rn.f32 %r3,", "mov.f32 %r5,"}),
    ],
)
def test_the_sign_of_what_is_squared_does_not_count(tool, tmp_path, after, changed):
    path = tmp_path / "x.ptx"
    path.write_text(SQUARE.replace("[%rd1], %r6;", f"[%rd1], {after}"))
    found = [" ".join(m.after.split()[:2]) for m in tool("mutate_ptx").mutants_of(path, "a test")]
    assert {each for each in found if "%r3," in each or "%r5," in each} == changed


@pytest.mark.parametrize(
    "line, kinds",
    [
        ("add.rn.f64 \t%rd1, %rd2, 0d0000000000000000;", {"constant"}),
        ("add.rn.f64 \t%rd1, %rd2, 0d0000000000000001;", {"constant", "operation"}),
        ("and.b64 \t%rd1, %rd2, -4294967296;", {"operation"}),
        ("and.b64 \t%rd1, %rd2, -4294967295;", {"constant", "operation"}),
    ],
)
def test_signs_of_zeros_and_ways_to_divide_do_not_count(tool, tmp_path, line, kinds):
    path = tmp_path / "x.ptx"
    path.write_text(f"// kernel k\n.visible .entry k()\n{{\n\t{line}\n\tcall \tf, (x);\n}}\n")
    assert {mutant.kind for mutant in tool("mutate_ptx").mutants_of(path, "a test")} == kinds


FROM_THE_BLOCK = """// kernel from_the_block
.visible .entry weft_0_from_the_block(.param .u64 x)
{
\tmov.u32 \t%r1, %ctaid.x;
\tmul.wide.u32 \t%rd4, %r1, %r2;
$L1:
\tadd.s64 \t%rd5, %rd1, %rd2;
\tsetp.lt.s64 \t%p1, %rd5, %rd9;
\tmov.u32 \t%r3, %nctaid.x;
\tmul.wide.u32 \t%rd6, %r3, 4;
\tadd.s64 \t%rd2, %rd2, %rd6;
\tadd.s64 \t%rd7, %rd4, %rd2;
\tsetp.lt.s64 \t%p2, %rd7, %rd8;
\t@%p2 bra \t$L1;
\tst.global.b64 \t[%rd2], %rd7;
}
"""


def test_the_end_of_the_grid_is_left_alone_where_points_count_from_the_block(tool, tmp_path):
    path = tmp_path / "x.ptx"
    path.write_text(FROM_THE_BLOCK)
    compared = {m.before.split()[1] for m in tool("mutate_ptx").mutants_of(path, "a test") if "setp" in m.before}
    assert compared == {"%p1,"}


ONE_FOR_ALL = """// kernel one_for_all
.visible .entry weft_0_one_for_all(.param .u64 x)
{
\tmov.u32 \t%r1, %tid.x;
\tcvt.u64.u32 \t%rd2, %r1;
\tadd.s64 \t%rd3, %rd4, %rd2;
\tsetp.ge.s64 \t%p1, %rd3, %rd5;
\t@%p1 bra \t$L1;
\tst.global.b32 \t[%rd1], %r2;
$L1:
\tret;
}
"""


@pytest.mark.parametrize(
    "after, is_changed",
    [
        ("st.global.b32 \t[%rd1], %r2;", False),
        ("st.global.b32 \t[%rd1], %r1;", True),  # each thread stores another number
        ("st.global.b32 \t[%rd3], %r2;", True),
        ("red.global.add.u32 \t[%rd1], 1;", True),  # counts the threads
        ("call \tf, (x);", True),
    ],
)
def test_it_does_not_matter_which_threads_do_the_same(tool, tmp_path, after, is_changed):
    path = tmp_path / "x.ptx"
    path.write_text(ONE_FOR_ALL.replace("st.global.b32 \t[%rd1], %r2;", after))
    changed = {mutant.number for mutant in tool("mutate_ptx").mutants_of(path, "a test")}
    assert {5, 6, 7} <= changed if is_changed else not {5, 6, 7} & changed


@pytest.mark.parametrize(
    "line, writes",
    [
        ("st.local.b32 \t[%rd1], 1;", False),
        ("st.param.b32 \t[param0], 1;", False),
        ("call.uni (retval0), __internal_pow, (param0);", False),
        ("call.uni report, (param0);", True),
        ("st.global.b32 \t[%rd1], 1;", True),
        ("st.b32 \t[%rd1], 1;", True),
        ("@%p1 red.global.add.u32 \t[%rd1], 1;", True),
    ],
)
def test_a_text_that_writes_nothing_is_left_alone(tool, tmp_path, line, writes):
    path = tmp_path / "x.ptx"
    path.write_text(f"// kernel k\n.visible .entry k()\n{{\n\tmul.rn.f32 \t%r1, %r2, %r3;\n\t{line}\n}}\n")
    assert any("mul" in mutant.before for mutant in tool("mutate_ptx").mutants_of(path, "a test")) is writes


@pytest.mark.parametrize(
    "between, counts",
    [
        ("mul.rn.f32 \t%r2, %r1, %r1;", False),
        ("st.global.b32 \t[%rd1+4], %r2;", False),
        ("ld.global.b32 \t%r2, [%rd1];", True),
        ("add.s64 \t%rd1, %rd1, 8;", True),
        ("@%p1 bra \t$L__BB0_1;", True),
        ("$L__BB0_1:", True),
        ("bar.sync \t0;", True),
        ("{ // callseq 1", True),
    ],
)
def test_a_store_that_another_one_overwrites_may_be_left_out(tool, tmp_path, between, counts):
    path = tmp_path / "x.ptx"
    path.write_text(
        "// kernel k\n.visible .entry k()\n{\n"
        f"\tst.global.b32 \t[%rd1], %r1;\n\t{between}\n\tst.global.b32 \t[%rd1], %r2;\n}}\n"
    )
    kinds = {(mutant.number, mutant.kind) for mutant in tool("mutate_ptx").mutants_of(path, "a test")}
    assert ((3, "left out") in kinds) is counts
    assert {(3, "address"), (5, "left out")} <= kinds


def test_steps_over_the_grid_are_left_alone(tool, tmp_path):
    path = tmp_path / "x.ptx"
    path.write_text(TEXT)
    changed = {mutant.before.split()[0] for mutant in tool("mutate_ptx").mutants_of(path, "a test")}
    assert changed == {"ld.global.b32", "add.s32", "st.global.b32"}

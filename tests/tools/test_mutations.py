"""The changes that tools/mutation/mutations.py makes, as lines of text."""

import pytest


@pytest.fixture(scope="module")
def changed(tool):
    """A function: the lines that a line may become by changes of one kind, behind `before` in a file."""
    module = tool("mutations")

    def lines(line, kind, path="src/a.cpp", before=";"):
        text = f"{before}\n{line}\n"
        found = [m for m in module.mutations(path, text) if m.kind == kind and m.line == 1]
        return [m.apply(text).split("\n")[1] for m in found]

    return lines


def test_comparisons_are_turned_or_made_strict(changed):
    assert changed("if (a < b) return;", "comparison") == ["if (a <= b) return;"]
    assert changed("bool e = a == b;", "comparison") == ["bool e = a != b;"]
    assert changed("    return a >= b", "comparison", "python/warp/a.py", "def f():") == ["    return a > b"]
    assert changed("std::vector<int> x = y << 3 >> z->k;", "comparison") == []


def test_a_sign_mutation_swaps_plus_and_minus(changed):
    assert changed("x = a + b - c;", "sign") == ["x = a - b - c;", "x = a + b + c;"]
    assert changed("x += f(-1);", "sign") == ["x -= f(-1);"]


def test_a_constant_mutation_adds_one(changed):
    assert changed("int n = 3;", "constant") == ["int n = 4;", "int n = 2;"]
    assert changed("bool b = true;", "constant") == ["bool b = false;"]
    assert changed("x = True", "constant", "python/warp/a.py", "") == ["x = False"]
    assert changed("float x32 = 1.5f + 1e9 + 0x10 + 10'000;", "constant") == []


def test_an_extreme_mutation_swaps_min_and_max(changed):
    assert changed("n = std::min(a, minimum);", "extreme") == ["n = std::max(a, minimum);"]


def test_an_argument_mutation_leaves_an_argument_out(changed):
    assert changed("x = f(a, g(b, c));", "argument") == [
        "x = f(g(b, c));",
        "x = f(a);",
        "x = f(a, g(c));",
        "x = f(a, g(b));",
    ]
    assert changed("x = f(a);", "argument") == [] and changed("for (int i = 0, j = 1; i < j; ++i)", "argument") == []


def test_conditions_are_dropped_and_decided(changed):
    assert changed("if (a && f(b || c)) x();", "condition") == [
        "if (a) x();",
        "if (f(b || c)) x();",
        "if (a && f(b)) x();",
        "if (a && f(c)) x();",
        "if (true) x();",
        "if (false) x();",
    ]
    assert changed("return !a->b && std::get<0>(c) == d;", "condition") == [
        "return !a->b;",
        "return std::get<0>(c) == d;",
        "return a->b && std::get<0>(c) == d;",
    ]
    # The other side stands on the next line: only what is whole goes.
    assert changed("if (a || b ||", "condition") == ["if (a ||", "if (b ||"]
    assert changed("if (auto x = f(); x)", "condition") == []


def test_conditions_of_python(changed):
    python = {"path": "python/warp/a.py", "before": "def f(a, b):"}
    assert changed("    return a and not b", "condition", **python) == [
        "    return a",
        "    return not b",
        "    return a and b",
    ]
    assert changed("    x = 1 if a not in b else 2", "condition", **python) == []
    text = changed("    if a or b[1]: pass", "condition", **python)
    assert text == ["    if a: pass", "    if b[1]: pass"]


def test_whole_statements_are_removed(changed):
    assert changed("    count(a, b)->c[0] += 1;", "statement") == ["    ;"]
    assert changed("    break;", "statement", before="if (x)") == ["    ;"]
    for declaration in ("const int a = f(b);", "using a::b;", "return x;", "int a;", "for (;;) f();", "f(a,"):
        assert changed(declaration, "statement") == []
    assert changed("f(a);", "statement", before="x = y +") == []  # the end of another statement
    python = {"path": "python/warp/a.py", "before": "def f(x):"}
    assert changed("    x.append(1)", "statement", **python) == ["    pass"]
    assert changed("    x[0] = 1", "statement", **python) == ["    pass"]
    assert changed('    x = f(1) + "text"  # why', "statement", **python) == ["    pass  # why"]
    assert changed("    return x", "statement", **python) == []


@pytest.mark.parametrize(
    "line",
    [
        "// if (a < b) return 3;",
        "/* a < b */",
        'throw Error("a < b && 3");',
        "#if A < 3",
        "char c = '3';",
        'R"(a < 3)";',
        "#include <a>",
    ],
)
def test_comments_strings_and_directives_stay(tool, line):
    found = tool("mutations").mutations("src/a.cpp", f";\n{line}\n")
    assert [m for m in found if m.kind != "statement"] == []


def test_checks_of_what_never_happens_stay(tool):
    text = ';\n    WEFT_CHECK(a < b && c, "what");\n    throw InternalError("x" + f(1));\n    return a < b;\n'
    assert {m.line for m in tool("mutations").mutations("src/a.cpp", text)} == {3}


def test_comments_strings_and_imports_of_python_stay(tool):
    text = '"""a < 3"""\nfrom a import b\nimport c\n# 1 < 2\n@d(3, 4)\ndef f(x):\n    return f"{x} < 3" + "x - 1"\n'
    assert tool("mutations").mutations("python/warp/a.py", text) == []


def test_code_keeps_its_place(tool):
    module = tool("mutations")
    text = 'a; /* b\nc */ d; // e\n#define x 1 \\\n  2\nf("g") + R"x(h\n)" )x";\n'
    code = module.cpp_code(text)
    assert len(code) == len(text) and code.count("\n") == text.count("\n")
    assert [line.rstrip() for line in code.split("\n")] == ["a;", "     d;", "", "", "f(   ) +", "      ;", ""]


def test_keys_name_a_change_wherever_its_line_stands(tool):
    module = tool("mutations")
    line = "x = a + b;\n"
    alone, moved = module.mutations("src/a.cpp", line), module.mutations("src/a.cpp", "y = 1;\n\n    " + line)
    keys = {m.key for m in alone}
    assert len(keys) == len(alone) and keys <= {m.key for m in moved}
    twice = module.mutations("src/a.cpp", line + line)
    assert len({m.key for m in twice}) == len(twice) == 2 * len(alone)
    assert not keys & {m.key for m in module.mutations("src/b.cpp", line)}


def test_a_file_that_has_changed_is_not_touched(tool):
    (first, *_) = tool("mutations").mutations("src/a.cpp", "x = a + b;\n")
    with pytest.raises(AssertionError, match="has changed"):
        first.apply("x = a - b;\n")

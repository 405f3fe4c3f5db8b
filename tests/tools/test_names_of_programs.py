"""docs/names.md: every name that real programs use most is there with a test, or absent."""

import ast
import re
from pathlib import Path

import pytest
import warp as wp

ROOT = Path(__file__).resolve().parents[2]
ROW = re.compile(r"^\| (\d+) \| `([\w.]+)` \| (?:`([\w/.]+)::(\w+)(?:\[(\w+)\])?`|absent: (\w+)) \|$", re.M)
PAGE = (ROOT / "docs/names.md").read_text()
ROWS = ROW.findall(PAGE)
FORMS = re.findall(r"^\| (.+) \| `([\w/.]+)::(\w+)` \|$", PAGE.partition("# Syntax of real programs")[2], re.M)


def exists(name):
    value = wp
    for part in name.split("."):
        if not hasattr(value, part):
            return False
        value = getattr(value, part)
    # Some names can be imported only, and say so when they are used.
    return not (value.__doc__ or "").startswith("Not there yet")


def test_the_page_has_250_names_in_order():
    assert [int(rank) for rank, *_ in ROWS] == list(range(1, 251))
    assert len({name for _, name, *_ in ROWS}) == 250


def test_names_are_absent_where_the_page_says_so():
    wrong = [name for _, name, file, _, _, theme in ROWS if exists(name) == bool(theme) or bool(file) == bool(theme)]
    assert wrong == []


@pytest.mark.parametrize("name, file, test, case", [row[1:5] for row in ROWS if row[2]])
def test_the_test_of_a_name_is_there_and_about_it(name, file, test, case):
    text = (ROOT / file).read_text()
    functions = {node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}
    assert test in functions
    # A sweep over the builtin table takes its names from the oracle.
    where = (ROOT / "tests/builtins/oracle.py").read_text() if file.startswith("tests/builtins") and case else text
    assert case in ("", name)
    last = name.rpartition(".")[2]
    assert re.search(rf"\b{last}\b", where), f"{file} does not mention {last}"


def is_call(name):
    return lambda node: isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name


def is_range(node):
    return isinstance(node, ast.For) and is_call("range")(node.iter)


def is_assignment(*kinds):
    """Whether a node assigns to a node of the first kind, which is a part of one of the second kind and so on."""

    def check(node):
        for target in node.targets if isinstance(node, ast.Assign) else ():
            for kind in kinds:
                if not isinstance(target, kind):
                    break
                target = getattr(target, "value", None)
            else:
                return True
        return False

    return check


def is_augmented(op, target=object):
    return lambda node: isinstance(node, ast.AugAssign) and isinstance(node.op, op) and isinstance(node.target, target)


def is_binary(op):
    return lambda node: isinstance(node, ast.BinOp) and isinstance(node.op, op)


def is_logic(op):
    return lambda node: isinstance(node, ast.BoolOp) and isinstance(node.op, op)


def is_comparison(op):
    return lambda node: isinstance(node, ast.Compare) and any(isinstance(o, op) for o in node.ops)


def is_return(check):
    return lambda node: isinstance(node, ast.Return) and check(node.value)


def is_a(kind):
    return lambda node: isinstance(node, kind)


FORM_IN_TREE = {
    "`if`": is_a(ast.If),
    "`for` over `range`, bounds known when compiled": is_range,
    "`for` over `range`, bounds known when run": is_range,
    "`while`": is_a(ast.While),
    "`break`": is_a(ast.Break),
    "`continue`": is_a(ast.Continue),
    "`a if c else b`": is_a(ast.IfExp),
    "`and`": is_logic(ast.And),
    "`or`": is_logic(ast.Or),
    "subscript =": is_assignment(ast.Subscript),
    "tuple =": is_assignment(ast.Tuple),
    "attribute =": is_assignment(ast.Attribute),
    "subscript of an attribute =": is_assignment(ast.Subscript, ast.Attribute),
    "attribute of a subscript =": is_assignment(ast.Attribute, ast.Subscript),
    "subscript of a subscript =": is_assignment(ast.Subscript, ast.Subscript),
    "name `+=`": is_augmented(ast.Add, ast.Name),
    "subscript `+=`": is_augmented(ast.Add, ast.Subscript),
    "attribute `+=`": is_augmented(ast.Add, ast.Attribute),
    "subscript `-=`": is_augmented(ast.Sub, ast.Subscript),
    "`*=`": is_augmented(ast.Mult),
    "`/=`": is_augmented(ast.Div),
    r"`\|=`": is_augmented(ast.BitOr),
    "`return` of a value": is_return(lambda value: value is not None and not isinstance(value, ast.Tuple)),
    "`return` of a tuple": is_return(lambda value: isinstance(value, ast.Tuple)),
    "`return` alone": is_return(lambda value: value is None),
    "`@`": is_binary(ast.MatMult),
    "`//`": is_binary(ast.FloorDiv),
    "`%`": is_binary(ast.Mod),
    "`**`": is_binary(ast.Pow),
    "`&`": is_binary(ast.BitAnd),
    "`<<`": is_binary(ast.LShift),
    "`>>`": is_binary(ast.RShift),
    "slices": is_a(ast.Slice),
    "star-unpacking": is_a(ast.Starred),
    "`assert`": is_a(ast.Assert),
    "`pass`": is_a(ast.Pass),
    "`in`": is_comparison(ast.In),
    "`is not`": is_comparison(ast.IsNot),
    "chained comparison": lambda node: isinstance(node, ast.Compare) and len(node.ops) > 1,
    "default arguments": lambda node: isinstance(node, ast.FunctionDef) and bool(node.args.defaults),
    **{f"`{name}()`": is_call(name) for name in ("int", "float", "bool", "len", "type", "print")},
}


def kernels_of(test, tree):
    """The functions inside the test, and those of the file that it names: kernels and what they call."""
    named = {node.id for node in ast.walk(test) if isinstance(node, ast.Name)}
    for node in ast.walk(test):
        if isinstance(node, ast.FunctionDef) and node is not test:
            yield node
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name in named:
            yield node


def test_the_page_has_every_form_of_syntax():
    assert [form for form, *_ in FORMS] == list(FORM_IN_TREE)


@pytest.mark.parametrize("form, file, test", FORMS)
def test_the_test_of_a_form_has_it_in_a_kernel(form, file, test):
    tree = ast.parse((ROOT / file).read_text())
    (function,) = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == test]
    found = [node for kernel in kernels_of(function, tree) for node in ast.walk(kernel)]
    assert any(map(FORM_IN_TREE[form], found)), f"{test} has no {form}"

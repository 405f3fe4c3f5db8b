"""Texts of random programs (generated.py) that are changed, to judge by them how far two runs may be apart."""

import re

from generated import THREADS

FUNCTIONS = ("sin", "cos", "tanh", "atan")  # those of generated.py
CALL = re.compile(rf"\bwp\.({'|'.join(FUNCTIONS)})\(")
FIRST_FUNCTION = "\n@wp.func\ndef squash"


def exact(text):
    """Without functions that are rounded differently: `squash` is a quotient."""
    return CALL.sub("squash(", text)


def single(text):
    """In float32."""
    return text.replace("float64", "float32").replace("vec3d", "vec3").replace("mat22d", "mat22")


def moved(text, choose, by):
    """With results of functions that are larger or smaller by the part `by` of themselves, drawn for each call."""
    made = [
        f"\n@wp.func\ndef {name}_{way}(a: wp.float64):\n    return wp.{name}(a) * wp.float64({factor!r})\n\n"
        for name in FUNCTIONS
        for way, factor in (("up", 1.0 + by), ("down", 1.0 - by))
    ]
    head, functions = text.split(FIRST_FUNCTION)
    body = CALL.sub(lambda call: f"{call[1]}_{choose.choice(['up', 'down'])}(", FIRST_FUNCTION + functions)
    return head + "".join(made) + body


# Sums over threads in any order: their parts of `total`, and the adjoints of values that all read. `added` and `taken`
# have the adjoints of += and -=.
ABSOLUTE = """
@wp.func
def term(a: wp.float64):
    return a


@wp.func_grad(term)
def term_backward(a: wp.float64, ret: wp.float64):
    wp.adjoint[a] += wp.abs(ret)


@wp.func
def terms(a: wp.vec3d):
    return a


@wp.func_grad(terms)
def terms_backward(a: wp.vec3d, ret: wp.vec3d):
    wp.adjoint[a] += wp.vec3d(wp.abs(ret[0]), wp.abs(ret[1]), wp.abs(ret[2]))


@wp.func
def added(a: wp.float64):
    return wp.abs(a)


@wp.func_grad(added)
def added_backward(a: wp.float64, ret: wp.float64):
    wp.adjoint[a] += ret


@wp.func
def taken(a: wp.float64):
    return wp.abs(a)


@wp.func_grad(taken)
def taken_backward(a: wp.float64, ret: wp.float64):
    wp.adjoint[a] -= ret

"""
KERNEL = "\n@wp.kernel\n"


def closing(text, opening):
    """The position at which the bracket that opens there is closed."""
    depth = 0
    for at in range(opening, len(text)):
        depth += (text[at] in "([") - (text[at] in ")]")
        if depth == 0:
            return at
    raise ValueError(f"nothing closes {text[opening:]!r}")


def absolute(text):
    """With absolute values of all that is added to `total`, and to the adjoints of `x` and `v`: of the sums there, the
    absolute sums of their terms. All else is as it was."""
    head, *kernels = text.split(KERNEL)
    body = "".join(KERNEL + kernel for kernel in kernels)
    for name, call in (("x", "term"), ("v", "terms")):
        start = 0
        while found := re.compile(rf"(?<![\w.\]]){name}\[").search(body, start):
            end = closing(body, found.end() - 1) + 1
            body = f"{body[: found.start()]}{call}({body[found.start() : end]}){body[end:]}"
            start = found.end() + len(call) + 1
    loop = rf"\1for \2 in range({THREADS}):\n\1    \3 = term(x[\2])"
    body = re.sub(r"(?m)^(\s*)for (\w+), (\w+) in enumerate\(x\):$", loop, body)
    return head + ABSOLUTE + "\n".join(line_with_absolute_sums(line) for line in body.split("\n"))


def line_with_absolute_sums(line):
    indent, statement = re.fullmatch(r"(\s*)(.*)", line).groups()
    if statement.startswith("total["):
        end = closing(statement, len("total")) + 1
        sign, value = re.fullmatch(r" ([+-])= (.*)", statement[end:]).groups()
        return f"{indent}{statement[:end]} += {'added' if sign == '+' else 'taken'}({value})"
    if atomic := re.match(r"wp\.atomic_(add|sub)\(total, ", statement):
        comma = atomic.end()
        while statement[comma] != ",":
            comma = closing(statement, comma) + 1 if statement[comma] in "([" else comma + 1
        index, value = statement[atomic.end() : comma], statement[comma + 2 : -1]
        return f"{indent}wp.atomic_add(total, {index}, {'added' if atomic[1] == 'add' else 'taken'}({value}))"
    return line

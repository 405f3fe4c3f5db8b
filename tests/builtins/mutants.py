"""Random kernels that are wrong: the programs of programs.py with names, types, operators and statements changed."""

import ast
import copy

NAMES = "a b f g v w i x n p of on op total t src box wp helper print len range None nothing float int self".split()

EXPRESSIONS_TEXT = """
'text' | None | True | 1e400 | 2**70 | -1 | 1j | ... | b'bytes' | (1, 2) | () | [1, 2.0] | {} | {1: 2}
{1, 2} | lambda: 1 | [k for k in x] | (k for k in x) | (a := 3) | f'{a}' | f'{a:x}' | f'{f:.3f}' | x[1:2]
x[1:2:3] | x[::] | x[...] | x[None] | x[1, 2, 3, 4, 5] | v[5] | v[0:2] | v[2:0] | v[a:b] | v[::0] | v.xyzw
v.q | v.x.y | wp.vec3 | wp.vec3(1) | wp.vec3(*v) | wp.vec3(1.0, 2.0) | wp.mat33(1.0) | wp.mat33()[0]
wp.quat() | wp.transform() | wp.float64(1.0) | wp.uint8(3) | wp.int64(i) | wp.nothing | wp.nothing(a) | wp.sin
wp.sin(a) | wp.sin() | wp.sin(f, f) | wp.dot(v, f) | wp.dot(v, w) | wp.normalize(v) | wp.atomic_add(x, i, f)
wp.atomic_add(n, 0.5, f) | wp.zeros(3) | wp.zeros(shape=a) | wp.zeros(shape=(0,)) | wp.array(ptr=a)
wp.array(ptr=wp.uint64(0), shape=3, dtype=int) | wp.static(1 // 0) | wp.static(3) | wp.static([]) | wp.tid()
wp.launch(a) | helper | helper() | helper(a) | helper(a, f) | helper(f, a) | helper(*t) | helper(a, f, a)
helper(a=a, f=f) | helper(a=a, q=f) | min() | min(a) | max(a, b, i) | sum(v) | sum(x) | any((a, f)) | len(a)
len(v) | len(x) | abs(v) | round(f) | int('3') | float(v) | bool(x) | int(a, b) | print(a) | type(a)
isinstance(a, int) | range(3) | enumerate(x) | zip(v, w) | reversed(t) | open('f') | a if f else v | a and v
not v | -x | ~f | +v | a < v | a in x | a in (1, 2) | a is None | x is not None | a is b | v == w | a == v
1 < a < 3 | a @ b | v @ v | x @ x | v * w | x + x | t + t | t[0] | t[a] | t[5] | a[0] | a.x | x.shape
x.shape[0] | x.nothing | a() | x[i][i] | p[i].x | p[i][1] | p[0:3] | op[i] | box[1:3] | box | src | t
__import__('os') | self.x | a ** b | f ** a | f // 0.0 | a % 0
"""

STATEMENTS_TEXT = """
pass|break|continue|return|return a|return a, f|return None|yield a|raise ValueError|assert a, f|assert x
assert a > 0, 'text'|del a|import os|global a|global zz|def q(): pass|class Q: pass|a = b = v|a, b = v
a, b, i = v|a, *b = v|*a, *b = v|(a, b), f = t, f|x = a|a = x|v = a|t = v|t = (a,)|src = n|src = None|src = p
box = x|x[i] = a|x[i] = v|x = None|x[0:3] = 1.0|x[0:3] += f|x[i][0] = f|v[0] = a|v[0:2] = w|v[0:2] = 1.0
v[5] = f|v.x = f|v.xy = w.zx|v.xx = w.xy|v.q = f|v += f|v @= w|a += f|a += None|a **= 2|a @= b|x += x|a.b = 3
wp.x = 3|i: int = 3|i: float = 3|i: nothing = 3|i: 'int' = 3|i: int|p[i] = v|p[i].x = a|p[i].x += f|p[i] += v
print(x)|print(a, sep=a)|print(f'{a:.3q}')|print(f'{v}')|print(*v)|'text'|3|...|f()|a()|helper|wp|None
for a in x: pass|for a in v: f = a|for a in (1, 2.0, v): f = a|for a, b in (1, 2): pass|for a in 3: pass
for zz in range(b): pass|for zz in range(f): pass|for zz in range(0, 9, 0): pass|for zz in range(): pass
for a in enumerate(v): pass|for zz in (helper, 3): a = zz|while a: a = v|while True: break|while x: break
while v: pass|if v: pass|if x: f = x[0]|if a: zz = 1|f = zz|if t: pass|with a: pass
try: a = 1 \\nexcept Exception: pass|match a: \\n  case 1: pass|async def q(): pass|await a|nonlocal a
type q = int|for a in (1, 2): \\n  if f > 0.0: break \\n  zz = a \\nelse: zz = 3
while a > 0: \\n  a = a - 1 \\n  if a == 3: break \\nelse: f = zz
"""

EXPRESSIONS = [text.strip() for text in EXPRESSIONS_TEXT.replace("\n", "|").split("|") if text.strip()]
STATEMENTS = [text.replace("\\n", "\n") for text in STATEMENTS_TEXT.replace("\n", "|").split("|") if text]

BINARY = [ast.Add, ast.Sub, ast.Mult, ast.MatMult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow]
BINARY += [ast.LShift, ast.RShift, ast.BitOr, ast.BitXor, ast.BitAnd]
COMPARE = [ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq, ast.Is, ast.IsNot, ast.In, ast.NotIn]
KINDS = ["name", "name", "expression", "expression", "expression", "operator", "statement", "statement"]
KINDS += ["drop", "move", "argument", "swap"]
UNARY = [ast.USub, ast.UAdd, ast.Invert, ast.Not]


def _expression(choose):
    return ast.parse(choose.choice(EXPRESSIONS).strip(), mode="eval").body


def _statements(choose):
    try:
        return ast.parse(choose.choice(STATEMENTS)).body
    except SyntaxError:  # of a newer Python
        return [ast.Pass()]


class _Swap(ast.NodeTransformer):
    """Replaces one node by another."""

    def __init__(self, old, new):
        self.old, self.new = old, new

    def visit(self, node):
        return self.new if node is self.old else self.generic_visit(node)


def _mutate(tree, choose):
    nodes = list(ast.walk(tree))
    blocks = [
        getattr(n, field) for n in nodes for field in ("body", "orelse") if isinstance(getattr(n, field, None), list)
    ]
    blocks = [b for b in blocks if b and b is not tree.body]
    kind = choose.choice(KINDS)
    if kind == "name":
        choose.choice([n for n in nodes if isinstance(n, ast.Name)]).id = choose.choice(NAMES)
    elif kind in ("expression", "swap"):
        old = choose.choice([n for n in nodes if isinstance(n, ast.expr)])
        others = [n for n in nodes if isinstance(n, ast.expr) and n is not old]
        # A copy: a list that holds `old` would hold itself.
        new = _expression(choose) if kind == "expression" else copy.deepcopy(choose.choice(others))
        return _Swap(old, new).visit(tree)
    elif kind == "operator":
        found = [n for n in nodes if isinstance(n, (ast.BinOp, ast.AugAssign, ast.Compare, ast.UnaryOp))]
        if found:
            node = choose.choice(found)
            if isinstance(node, ast.Compare):
                node.ops[0] = choose.choice(COMPARE)()
            else:
                node.op = choose.choice(UNARY if isinstance(node, ast.UnaryOp) else BINARY)()
    elif kind == "statement":
        block = choose.choice(blocks)
        at = choose.randrange(len(block) + 1)
        block[at:at] = _statements(choose)
    elif kind == "drop":
        block = choose.choice(blocks)
        block[:] = block[: (at := choose.randrange(len(block)))] + block[at + 1 :] or [ast.Pass()]
    elif kind == "move":
        block, other = choose.choice(blocks), choose.choice(blocks)
        other.insert(choose.randrange(len(other) + 1), copy.deepcopy(choose.choice(block)))
    else:
        calls = [n for n in nodes if isinstance(n, ast.Call)]
        call = choose.choice(calls)
        if call.args and choose.random() < 0.5:
            call.args.pop()
        else:
            call.args.append(_expression(choose))
    return tree


def mutant(source, choose):
    """The source with one to three mistakes, as far as Python itself can read it."""
    while True:
        tree = ast.parse(source)
        for _ in range(choose.randint(1, 3)):
            tree = _mutate(tree, choose)
        try:
            text = ast.unparse(ast.fix_missing_locations(tree)) + "\n"
            compile(text, "mutant", "exec")
        except (SyntaxError, ValueError, AttributeError, TypeError):
            continue  # Python says so before Weft sees it
        return text

"""Plausible mistakes in a source file, for tools/mutation/mutate.py: each is one small change of one line.

The kinds: a comparison turned or made strict, a sign, a constant, an extreme, an argument left out, a condition dropped
or decided, a statement removed. Comments, strings, preprocessor lines and checks of internal errors are not touched.
A change may fail to compile.
"""

import ast
import hashlib
import io
import re
import tokenize
from dataclasses import dataclass
from pathlib import PurePosixPath

from campaign import replaced_line

KINDS = ("comparison", "sign", "constant", "extreme", "argument", "condition", "statement")


@dataclass(frozen=True)
class Mutation:
    """The characters begin..end of line `line` (counted from 0) of the file become `after`."""

    path: str
    line: int
    begin: int
    end: int
    before: str
    after: str
    kind: str
    text: str  # the line as it is
    occurrence: int  # of this line among equal ones in the file: tells them apart when others are added

    @property
    def key(self):
        """Names the change in results; the same when lines above it come or go."""
        parts = (self.path, self.text.strip(), str(self.occurrence), self.before, self.after, str(self.offset))
        return hashlib.sha1("\0".join(parts).encode()).hexdigest()[:12]

    @property
    def offset(self):
        return self.begin - (len(self.text) - len(self.text.lstrip()))

    def apply(self, text):
        """The file's text with the change."""
        assert text.split("\n")[self.line] == self.text, f"{self.path} has changed"
        return replaced_line(text, self.line, self.text[: self.begin] + self.after + self.text[self.end :])

    def __str__(self):
        return f"{self.path}:{self.line + 1}: {self.kind}: {self.before!r} -> {self.after!r}"


# ---- code without comments and strings ----

CPP_TOKENS = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<tag>[^\s()\\]{0,16})\(.*?\)(?P=tag)"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-zA-Z])\'(?:\\.|[^\'\\\n])+\'',
    re.DOTALL,
)


def blank(text, begin, end):
    return text[:begin] + re.sub(r"[^\n]", " ", text[begin:end]) + text[end:]


def cpp_code(text):
    """The text with spaces in place of comments, strings and preprocessor lines; every character keeps its place."""
    for match in CPP_TOKENS.finditer(text):
        text = blank(text, *match.span())
    lines, continued = text.split("\n"), False
    for number, line in enumerate(lines):
        directive = continued or line.lstrip().startswith("#")
        continued = directive and line.rstrip().endswith("\\")
        if directive:
            lines[number] = " " * len(line)
    return "\n".join(lines)


def python_code(text):
    """The same of Python."""
    lines = text.split("\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if (
            token.type == tokenize.COMMENT
            or tokenize.tok_name[token.type].endswith("STRING")
            or (tokenize.tok_name[token.type].startswith("FSTRING"))
        ):
            (first, begin), (last, end) = token.start, token.end
            text = blank(text, starts[first - 1] + begin, starts[last - 1] + end)
    return text


# ---- changes of an expression ----

COMPARISONS = {" < ": " <= ", " <= ": " < ", " > ": " >= ", " >= ": " > ", " == ": " != ", " != ": " == "}
SIGNS = {" + ": " - ", " - ": " + ", " += ": " -= ", " -= ": " += "}
WORDS = {"true": "false", "false": "true", "True": "False", "False": "True"}
EXTREMES = {"min": "max", "max": "min"}


def replacements(code, table, pattern):
    for match in re.finditer(pattern, code):
        if match[0] in table:
            yield match.start(), match.end(), table[match[0]]


def constants(code):
    yield from replacements(code, WORDS, r"\b[A-Za-z]+\b")
    for match in re.finditer(r"(?<![\w.'])(\d+)(?![\w.'])", code):
        number = int(match[0])
        if not 0 <= number < 2**31:
            continue
        yield match.start(), match.end(), str(number + 1)
        if number > 0:
            yield match.start(), match.end(), str(number - 1)


OPEN, CLOSE = "([{", ")]}"


def closing(code, begin):
    """The index of the bracket that closes the one at `begin`, or None if it is not on this line."""
    depth = 0
    for at in range(begin, len(code)):
        if code[at] in OPEN:
            depth += 1
        elif code[at] in CLOSE:
            depth -= 1
            if depth == 0:
                return at
    return None


def top_level(code, begin, end, separator):
    """The pieces of code[begin:end] between separators that stand in no bracket: [(begin, end), ...]."""
    pieces, depth, start = [], 0, begin
    for at in range(begin, end):
        if code[at] in OPEN:
            depth += 1
        elif code[at] in CLOSE:
            depth -= 1
        elif depth == 0 and code.startswith(separator, at):
            pieces.append((start, at))
            start = at + len(separator)
    return [*pieces, (start, end)]


def arguments(code):
    """A call with two or more arguments on one line loses one."""
    for match in re.finditer(r"[\w>\]]\(", code):
        begin, end = match.end(), closing(code, match.end() - 1)
        if end is None or ";" in code[begin:end]:
            continue
        pieces = top_level(code, begin, end, ",")
        if len(pieces) < 2 or any(not code[a:b].strip() for a, b in pieces):
            continue
        yield begin, pieces[1][0] + (code[pieces[1][0]] == " "), ""
        for before, piece in zip(pieces, pieces[1:], strict=False):
            yield before[1], piece[1], ""


def ends_operand(code, at, words):
    """The number of characters at `at` that separate two operands: 0 for a part of one."""
    if code[at] in ",;?" or (code[at] == ":" and "::" not in code[max(at - 1, 0) : at + 2]):
        return 1
    return next((len(word) for word in words if code.startswith(word, at)), 0)


def operand_begin(code, at, words):
    """The begin of the operand that ends before `at`: behind an open bracket or a separator of operands."""
    depth = 0
    for begin in range(at - 1, -1, -1):
        if code[begin] in CLOSE:
            depth += 1
        elif code[begin] in OPEN:
            if depth == 0:
                return begin + 1
            depth -= 1
        elif depth == 0 and ends_operand(code, begin, words):
            return begin + ends_operand(code, begin, words)
    return 0


def operand_end(code, at, words):
    """Where the operand that begins at `at` ends."""
    depth = 0
    for end in range(at, len(code)):
        if code[end] in OPEN:
            depth += 1
        elif code[end] in CLOSE:
            if depth == 0:
                return end
            depth -= 1
        elif depth == 0 and ends_operand(code, end, words):
            return end
    return len(code)


def conditions(code, python):
    """One side of `and` or `or` goes, `not` goes, a condition is decided."""
    both = (" and ", " or ") if python else (" && ", " || ")
    stops = (
        (*both, " = ", "return ", "if ", "while ", " else ", "assert ", "not ") if python else (*both, " = ", "return ")
    )
    code += " "  # an operator at the end of a line is one, too
    for word in both:
        for match in re.finditer(re.escape(word), code):
            begin, end = operand_begin(code, match.start(), stops), operand_end(code, match.end(), both)
            if code[begin : match.start()].strip() and code[match.end() : end].strip():
                yield match.start(), end, ""
                yield begin + (len(code[begin:]) - len(code[begin:].lstrip())), match.end(), ""
    for match in re.finditer(r"\bnot (?!in\b)" if python else r"!(?=[\w(:])", code):
        yield match.start(), match.end(), ""
    if python:
        match = re.match(r"\s*(?:el)?if (?P<test>.+):\s*$", code)
        if match:
            for word in ("True", "False"):
                yield match.start("test"), match.end("test"), word
        return
    for match in re.finditer(r"\bif (?:constexpr )?\(", code):
        begin, end = match.end(), closing(code, match.end() - 1)
        if end is not None and ";" not in code[begin:end] and " = " not in code[begin:end]:
            for word in ("true", "false"):
                yield begin, end, word


# ---- whole statements ----

NO_STATEMENT = re.compile(
    r"(using|const|constexpr|static|auto|struct|class|enum|template|case|default|namespace|public|private|friend|extern)\b"
)


def cpp_statements(lines):
    """The lines that are one statement, whole and by itself: {line: (index of its end, replacement)}."""
    found, before = {}, ";"
    for number, line in enumerate(lines):
        code = line.strip()
        whole = before[-1] in ";{}:)" if before else True
        if code.endswith(";") and whole and code.count(";") == 1 and not NO_STATEMENT.match(code):
            balanced = all(code.count(a) == code.count(b) for a, b in zip(OPEN, CLOSE, strict=True))
            # A call or an assignment: its left side is one expression; that of a declaration has two words.
            left = re.split(r" [-+*/|&^]?= ", code[:-1])[0]
            is_expression = len(top_level(left, 0, len(left), " ")) == 1 and (left != code[:-1] or left.endswith(")"))
            if balanced and (is_expression or code in ("break;", "continue;", "return;")):
                found[number] = (len(line.rstrip()), ";")
        if code:
            before = code
    return found


def python_statements(text, lines):
    found = {}
    for node in ast.walk(ast.parse(text)):
        simple = isinstance(node, (ast.Assign, ast.AugAssign, ast.Raise, ast.Delete, ast.Break, ast.Continue))
        call = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
        if (simple or call) and node.lineno == node.end_lineno:
            line = lines[node.lineno - 1]
            if line[: node.col_offset].strip() == "" and line[node.end_col_offset :].strip() == "":
                found[node.lineno - 1] = (node.end_col_offset, "pass")
    return found


# ---- a file ----

# Not statements, or checks of internal errors.
NOT_CHANGED = re.compile(r"\s*(?:(?:import|from|using|namespace|WEFT_CHECK)\b|@|throw InternalError\b)")


def mutations(path, text):
    """Every change of one file, in the order of its lines."""
    python = PurePosixPath(path).suffix == ".py"
    code_lines = (python_code(text) if python else cpp_code(text)).split("\n")
    lines = text.split("\n")
    statements = python_statements(text, code_lines) if python else cpp_statements(code_lines)
    seen, found = {}, []
    for number, (line, code) in enumerate(zip(lines, code_lines, strict=True)):
        occurrence = seen[line.strip()] = seen.get(line.strip(), -1) + 1
        if not code.strip() or NOT_CHANGED.match(code):
            continue
        changes = [("comparison", c) for c in replacements(code, COMPARISONS, r" (?:[<>]=?|[=!]=) ")]
        changes += [("sign", c) for c in replacements(code, SIGNS, r"(?<=[\w)\]]) [-+]=? ")]
        changes += [("constant", c) for c in constants(code)]
        changes += [("extreme", c) for c in replacements(code, EXTREMES, r"\b(?:min|max)\b(?=[(<])")]
        changes += [("argument", c) for c in arguments(code)]
        changes += [("condition", c) for c in conditions(code, python)]
        if number in statements:
            begin = len(code) - len(code.lstrip())
            changes.append(("statement", (begin, *statements[number])))
        for kind, (begin, end, after) in changes:
            if line[begin:end] != after:
                found.append(Mutation(path, number, begin, end, line[begin:end], after, kind, line, occurrence))
    return list(dict.fromkeys(found))

"""Reads the YAML that charts and CRD files are written in: block maps and lists, flow lists and maps on
one line, plain and quoted scalars, `>-` and `|` texts. Anything else is an error, never a guess."""

import json
import re

KEY = re.compile(r"""("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^\s#'"\[\]{},&*!|>%@`-][^#]*?|-[^\s#][^#]*?):(?:\s+|$)(.*)""")


class Unreadable(Exception):
    pass


def documents(text):
    """Every non-empty document."""
    found = []
    for part in re.split(r"(?m)^---\s*$", text):
        lines = [(len(line) - len(line.lstrip()), line.strip()) for line in part.splitlines()]
        reader = Reader(lines)
        value = reader.document()
        if value is not None:
            found.append(value)
    return found


def scalar(text):
    text = text.strip()
    if text[:1] in "\"'[{":
        value, rest = flow(text)
        if rest.strip() and not rest.strip().startswith("#"):
            raise Unreadable(f"text after the value: {text!r}")
        return value
    text = re.sub(r"\s+#.*$", "", text)
    if text[:1] in ("&", "*", "!", "|", ">", "%", "@", "`"):
        raise Unreadable(f"not in the subset: {text!r}")
    return plain(text)


def plain(text):
    constants = {"": None, "~": None, "null": None, "true": True, "false": False}
    if text in constants:
        return constants[text]
    if re.fullmatch(r"[-+]?[0-9]+", text):
        return int(text)
    if re.fullmatch(r"[-+]?[0-9]+\.[0-9]+", text):
        return float(text)
    return text


def flow(text):
    """Value at the start of text, and what follows it."""
    if text[0] == '"':
        value, end = json.JSONDecoder().raw_decode(text)
        return value, text[end:]
    if text[0] == "'":
        match = re.match(r"'((?:[^']|'')*)'", text)
        if not match:
            raise Unreadable(f"open quote: {text!r}")
        return match.group(1).replace("''", "'"), text[match.end():]
    if text[0] in "[{":
        return flow_collection(text)
    match = re.match(r"[^,\[\]{}:]*", text)
    return plain(match.group().strip()), text[match.end():]


def flow_collection(text):
    closing, items = {"[": "]", "{": "}"}[text[0]], []
    rest = text[1:].lstrip()
    while not rest.startswith(closing):
        if not rest:
            raise Unreadable(f"open bracket: {text!r}")
        value, rest = flow(rest)
        rest = rest.lstrip()
        if closing == "}":
            if not rest.startswith(":"):
                raise Unreadable(f"no colon: {text!r}")
            item, rest = flow(rest[1:].lstrip())
            value, rest = (value, item), rest.lstrip()
        items.append(value)
        if rest.startswith(","):
            rest = rest[1:].lstrip()
        elif not rest.startswith(closing):
            raise Unreadable(f"no comma: {text!r}")
    return (dict(items) if closing == "}" else items), rest[1:]


class Reader:
    def __init__(self, lines):
        self.lines, self.at = lines, 0

    def peek(self):
        while self.at < len(self.lines):
            indent, text = self.lines[self.at]
            if text and not text.startswith("#"):
                return indent, text
            self.at += 1
        return -1, ""

    def document(self):
        indent, _ = self.peek()
        value = self.block(indent) if indent >= 0 else None
        if self.peek()[0] >= 0:
            raise Unreadable(f"cannot read {self.peek()[1]!r}")
        return value

    def block(self, indent):
        _, text = self.peek()
        if text == "-" or text.startswith("- "):
            return self.sequence(indent)
        if KEY.fullmatch(text):
            return self.mapping(indent)
        self.at += 1
        return scalar(text)

    def sequence(self, indent):
        items = []
        while True:
            here, text = self.peek()
            if here != indent or not (text == "-" or text.startswith("- ")):
                return items
            inner = text[1:].lstrip()
            if not inner:
                self.at += 1
                items.append(self.nested(indent + 1))
            else:
                column = indent + len(text) - len(inner)
                self.lines[self.at] = (column, inner)
                items.append(self.block(column))

    def mapping(self, indent):
        found = {}
        while True:
            here, text = self.peek()
            match = KEY.fullmatch(text)
            if here != indent or not match or text.startswith("- "):
                return found
            key = scalar(match.group(1)) if match.group(1)[0] in "\"'" else match.group(1)
            if key in found:
                raise Unreadable(f"key twice: {key!r}")
            self.at += 1
            found[key] = self.value(indent, match.group(2).strip())

    def value(self, indent, text):
        if re.fullmatch(r"[|>]-?", text):
            return self.text(indent, text)
        if text and not text.startswith("#"):
            return scalar(text)
        here, following = self.peek()
        if here == indent and following.startswith("- "):
            return self.sequence(indent)
        return self.nested(indent + 1)

    def nested(self, least):
        here, _ = self.peek()
        return self.block(here) if here >= least else None

    def text(self, indent, style):
        taken = []
        while self.at < len(self.lines):
            here, line = self.lines[self.at]
            if line and here <= indent:
                break
            taken.append((here, line))
            self.at += 1
        while taken and not taken[-1][1]:
            taken.pop()
        margin = min((here for here, line in taken if line), default=0)
        lines = [" " * max(0, here - margin) + line for here, line in taken]
        joined = " ".join(lines) if style.startswith(">") else "\n".join(lines)
        return joined if style.endswith("-") else joined + "\n"

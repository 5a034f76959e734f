#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
#
# Wraps comments that are too wide, which clang-format does badly: of a block comment only the paragraphs
# with a line that is too wide; a comment of one line becomes a block. Comments behind code, and lines that
# are set as an example (a tab or two blanks after the '*'), are left for a human.
#
# usage: wrap.py FILE...
import re, sys, textwrap

MAX = 100
ONE = re.compile(r"^(\t*)/\* (.*) \*/$")
ITEM = re.compile(r"^\t* \* (-|\w+:  )")
INSIDE = re.compile(r"^(\t*) \*(?: (.*))?$")


def width(line):
    return len(line.expandtabs())


def fill(text, indent):
    return [f"{indent} * {part}" for part in textwrap.wrap(text, MAX - width(indent) - 3,
                                                            break_long_words=False, break_on_hyphens=False)]


def wrap_paragraph(lines):
    if not any(width(line) > MAX for line in lines):
        return lines
    parts = [INSIDE.match(line) for line in lines]
    return fill(" ".join(part[2] for part in parts), parts[0][1])


def is_text(line):
    part = INSIDE.match(line)
    return part is not None and bool(part[2]) and not part[2].startswith((" ", "\t", "/")) and "*/" not in line


def wrap(lines):
    out, paragraph, in_block = [], [], False
    for line in lines:
        one = ONE.match(line)
        if one and width(line) > MAX:
            out += [one[1] + "/*"] + fill(one[2], one[1]) + [one[1] + " */"]
            continue
        if re.match(r"^\t*/\*$", line):
            in_block = True
        if in_block and is_text(line):
            if ITEM.match(line):
                out += wrap_paragraph(paragraph)
                paragraph = []
            paragraph.append(line)
            continue
        out += wrap_paragraph(paragraph) + [line]
        paragraph = []
        if "*/" in line:
            in_block = False
    return out + paragraph


for path in sys.argv[1:]:
    with open(path) as file:
        before = file.read().split("\n")
    after = wrap(before)
    if after != before:
        with open(path, "w") as file:
            file.write("\n".join(after))

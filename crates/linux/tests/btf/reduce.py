#!/usr/bin/env python3
"""Reduces a kernel's BTF to some types.

    reduce.py BTF OUT NAME...

Keeps the structures, enumerations and functions of these names and what they hold; what they only point to becomes
a declaration, unless it is named too. Format: Documentation/bpf/btf.rst of Linux.
"""
import struct
import sys

MAGIC, HEADER = 0xEB9F, struct.Struct("<HBBIIIII")
(INT, PTR, ARRAY, STRUCT, UNION, ENUM, FWD, TYPEDEF, VOLATILE, CONST, RESTRICT, FUNC, PROTO, VAR,
 DATASEC, FLOAT, DECL_TAG, TYPE_TAG, ENUM64) = range(1, 20)
# Words behind a type's first three: always, and for each of its vlen elements.
EXTRA = {INT: (1, 0), ARRAY: (3, 0), STRUCT: (0, 3), UNION: (0, 3), ENUM: (0, 2), PROTO: (0, 2),
         VAR: (1, 0), DATASEC: (0, 3), DECL_TAG: (1, 0), ENUM64: (0, 3)}
MODIFIERS = (TYPEDEF, VOLATILE, CONST, RESTRICT, TYPE_TAG)


class Btf:
    def __init__(self, data):
        magic, _, _, header, type_at, type_size, string_at, string_size = HEADER.unpack_from(data)
        assert magic == MAGIC, "no BTF"
        self.strings = data[header + string_at:][:string_size]
        self.types = [[0, 0, 0]]  # void
        at, end = header + type_at, header + type_at + type_size
        while at < end:
            info = struct.unpack_from("<I", data, at + 4)[0]
            once, each = EXTRA.get(info >> 24 & 31, (0, 0))
            words = 3 + once + each * (info & 0xFFFF)
            self.types.append(list(struct.unpack_from(f"<{words}I", data, at)))
            at += 4 * words

    def name(self, at):
        return self.strings[at:self.strings.index(b"\0", at)].decode()

    def kind(self, number):
        return self.types[number][1] >> 24 & 31

    def is_pointed(self, number):
        """The structure behind a pointer's target, if it is one."""
        while number and self.kind(number) in MODIFIERS:
            number = self.types[number][2]
        return number if self.kind(number) in (STRUCT, UNION) else 0


def references(kind, words):
    """Where in its words a type names others."""
    if kind in (PTR, FUNC, VAR, *MODIFIERS):
        return [2]
    if kind == ARRAY:
        return [3, 4]
    if kind in (STRUCT, UNION):
        return range(4, len(words), 3)
    if kind == PROTO:
        return [2, *range(4, len(words), 2)]
    return []


def names(kind, words):
    """Where it has offsets of strings."""
    if kind in (STRUCT, UNION, ENUM64):
        return [0, *range(3, len(words), 3)]
    if kind in (ENUM, PROTO):
        return [0, *range(3, len(words), 2)]
    return [0]


def find(btf, wanted):
    roots = {number for number, words in enumerate(btf.types)
             if number and btf.kind(number) in (STRUCT, ENUM, FUNC) and btf.name(words[0]) in wanted}
    for name in sorted(wanted - {btf.name(btf.types[root][0]) for root in roots}):
        print(f"not there: {name}", file=sys.stderr)
    return roots


def reduce(btf, roots, whole):
    """The bytes, and which structures they hold; pointers to those in `whole` lead there."""
    strings, offsets = bytearray(b"\0"), {"": 0}
    out, numbers = [], {(0, False): 0}

    def text(at):
        name = btf.name(at)
        if name not in offsets:
            offsets[name] = len(strings)
            strings.extend(name.encode() + b"\0")
        return offsets[name]

    def put(number, is_target, todo):
        """The new number; what is not there yet is done later."""
        pointed = btf.is_pointed(number) if is_target else 0
        declared = bool(pointed and pointed not in whole and btf.types[pointed][0])
        key = (pointed, True) if declared else (number, False)
        if key not in numbers:
            numbers[key] = len(out) + 1
            if declared:
                union = btf.kind(pointed) == UNION
                out.append([text(btf.types[pointed][0]), FWD << 24 | union << 31, 0])
            else:
                out.append(None)
                todo.append((number, numbers[key]))
        return numbers[key]

    todo = []
    for root in sorted(roots):
        put(root, False, todo)
    while todo:
        number, new = todo.pop()
        words, kind = list(btf.types[number]), btf.kind(number)
        for at in references(kind, words):
            words[at] = put(words[at], kind == PTR, todo)
        for at in names(kind, words):
            words[at] = text(words[at])
        out[new - 1] = words
    types = b"".join(struct.pack(f"<{len(words)}I", *words) for words in out)
    header = HEADER.pack(MAGIC, 1, 0, HEADER.size, 0, len(types), len(types), len(strings))
    return header + types + strings, {number for number, declared in numbers if not declared}


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    with open(sys.argv[1], "rb") as file:
        btf = Btf(file.read())
    roots = find(btf, set(sys.argv[3:]))
    _, whole = reduce(btf, roots, roots)
    reduced, _ = reduce(btf, roots, whole)
    with open(sys.argv[2], "wb") as file:
        file.write(reduced)


if __name__ == "__main__":
    main()

# Writes what a raw dump of BTF says of exported functions of laws, as a header for C: their structures, and their
# prototypes. What is named in `opaque` is words to C.
/^\[/ {
    id = substr($1, 2) + 0
    kind[id] = $2
    for (i = 4; i <= NF; i++) {
        split($i, part, "=")
        if (part[1] == "size") size[id] = part[2]
        if (part[1] == "type_id" || part[1] == "ret_type_id") of[id] = part[2]
        if (part[1] == "nr_elems") count[id] = part[2]
        if (part[1] == "linkage") linkage[id] = part[2]
    }
    name[id] = substr($3, 2, length($3) - 2)
    if (kind[id] == "FUNC" && name[id] ~ /^law_/) functions[++f] = id
    next
}
/^\t/ {
    split($2, type, "=")
    n = ++members[id]
    member[id, n] = substr($1, 2, length($1) - 2)
    member_type[id, n] = type[2]
    split($3, bits, "=")
    place[id, n] = bits[2] / 8
}
function wrapped(id) {
    # Rust's names for a number with a unit.
    while (kind[id] == "STRUCT" && members[id] == 1 && member[id, 1] == "__0") id = member_type[id, 1]
    return id
}
# A declaration of that name.
function declared(id, called,    words) {
    id = wrapped(id)
    if (kind[id] == "ARRAY") return declared(of[id], called "[" count[id] "]")
    if (kind[id] == "PTR") return declared(of[id], "*" called)
    if (kind[id] == "STRUCT") {
        # Rust has two of a name in two modules: C calls the one that functions take so, the other by its place there.
        if (!(id in title)) title[id] = name[id] (name[id] in taken ? "_" called : "")
        taken[title[id]] = 1
        define(id)
        return "struct " title[id] " " called
    }
    words["u8"] = words["bool"] = "__u8"
    words["u16"] = "__u16"
    words["u32"] = "__u32"
    words["u64"] = words["usize"] = "__u64"
    words["i8"] = "__s8"
    words["i16"] = "__s16"
    words["i32"] = "__s32"
    words["i64"] = words["isize"] = "__s64"
    if (!(name[id] in words)) {
        print "no word for " kind[id] " " name[id] > "/dev/stderr"
        failed = 1
    }
    return words[name[id]] " " called
}
function define(id,    n, text, at, order, i, j, held) {
    if (id in defined) return
    defined[id] = 1
    text = "\nstruct " title[id] " {\n"
    if (index(" " opaque " ", " " name[id] " ")) {
        text = text "\t__u64 state[" size[id] / 8 "];\n"
    } else {
        # In the order of their places, which is C's.
        for (n = 1; n <= members[id]; n++) order[n] = n
        for (i = 2; i <= members[id]; i++)
            for (j = i; j > 1 && place[id, order[j]] < place[id, order[j - 1]]; j--) {
                held = order[j]; order[j] = order[j - 1]; order[j - 1] = held
            }
        for (n = 1; n <= members[id]; n++)
            text = text "\t" declared(member_type[id, order[n]], member[id, order[n]]) ";\n"
    }
    # What it holds was printed before.
    printf "%s};\n_Static_assert(sizeof(struct %s) == %d, \"as Rust has it\");\n", text, title[id], size[id]
}
END {
    print "/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */"
    print "/* Written by build.sh of what Rust's compiler made of " source " (header.awk): do not edit. */"
    print "#pragma once"
    print "#include <linux/types.h>"
    for (i = 1; i <= f; i++) {
        proto = of[functions[i]]
        for (n = 1; n <= members[proto]; n++) {
            id = of[member_type[proto, n]]
            if (kind[member_type[proto, n]] == "PTR" && kind[id] == "STRUCT") taken[title[id] = name[id]] = 1
        }
    }
    for (i = 1; i <= f; i++) {
        proto = of[functions[i]]
        line[i] = "LAW " declared(of[proto], name[functions[i]]) "("
        for (n = 1; n <= members[proto]; n++)
            line[i] = line[i] (n > 1 ? ", " : "") declared(member_type[proto, n], member[proto, n])
        line[i] = line[i] ");"
    }
    print "\n/* Hidden: static subprograms to the verifier, which then accepts map pointers and spin locks. */"
    print "#define LAW extern __attribute__((visibility(\"hidden\")))\n"
    for (i = 1; i <= f; i++) print line[i]
    exit failed
}

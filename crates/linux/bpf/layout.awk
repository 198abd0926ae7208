# Tells each structure in a raw dump of BTF on a line: name, bytes, and member@byte+bytes for each member. So the compilers of
# two languages can be compared.
/^\[/ {
    id = substr($1, 2) + 0
    kind[id] = $2
    size[id] = $2 == "PTR" ? 8 : 0
    for (i = 4; i <= NF; i++) {
        split($i, part, "=")
        if (part[1] == "size") size[id] = part[2]
        if (part[1] == "type_id") of[id] = part[2]
        if (part[1] == "nr_elems") count[id] = part[2]
    }
    name[id] = substr($3, 2, length($3) - 2)
    next
}
kind[id] == "STRUCT" {
    split($2, type, "=")
    split($3, bits, "=")
    n = ++members[id]
    member[id, n] = substr($1, 2, length($1) - 2)
    place[id, n] = bits[2] / 8
    member_type[id, n] = type[2]
}
function bytes(id) {
    if (kind[id] == "ARRAY") return count[id] * bytes(of[id])
    return id in of ? bytes(of[id]) : size[id]
}
END {
    for (id in kind) {
        if (kind[id] != "STRUCT") continue
        line = name[id] " " size[id]
        # What wraps one structure is that structure by another name.
        for (of_it = id; members[of_it] == 1 && kind[member_type[of_it, 1]] == "STRUCT"; ) of_it = member_type[of_it, 1]
        for (n = 1; n <= members[of_it]; n++)
            line = line " " member[of_it, n] "@" place[of_it, n] "+" bytes(member_type[of_it, n])
        print line
    }
}

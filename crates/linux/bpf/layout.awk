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
        for (n = 1; n <= members[id]; n++)
            line = line " " member[id, n] "@" place[id, n] "+" bytes(member_type[id, n])
        print line
    }
}

# Makes the type information (BTF) in the assembly text of Rust's compiler such as kernels take: names are identifiers of C, so that
# Option<Time> becomes Option_Time_, and fields stand in the order of their places, of which Rust chooses another than that of their
# declaration (btf_name_valid_identifier and btf_struct_check_meta in kernel/bpf/btf.c). Nothing else of the text changes.
/^\t\.section\t/ {
    is_types = /\t\.BTF,/
    words = 0
}
!is_types { print; next }
/^\t\.ascii\t"/ {
    # What has a slash is the name of a file, and what has escapes is the text of a source line.
    name = substr($0, 10, length($0) - 10)
    if (name !~ /[\\\/]/) gsub(/[^A-Za-z0-9_.]/, "_", name)
    print "\t.ascii\t\"" name "\""
    next
}
!/^\t\.long\t/ { print; next }
{
    # Five words of a header, of which the third is the size of the types; then these.
    if (++words == 3) end = 5 + $2 / 4
    if (words <= 5 || words > end) { print; next }
    if (left == 0) {
        # A type begins: its name, what it is, and a size or another type.
        begun = words
        left = 3
    }
    if (words == begun + 1) {
        kind = int($2 / 16777216) % 32
        members = $2 % 65536
        # INT, ARRAY, STRUCT and UNION, ENUM, FUNC_PROTO, VAR, DATASEC, DECL_TAG, ENUM64.
        more = kind == 1 || kind == 14 || kind == 17 ? 1 : kind == 3 ? 3 : kind == 4 || kind == 5 || kind == 15 || kind == 19 ? 3 * members : \
            kind == 6 || kind == 13 ? 2 * members : 0
        left += more
    }
    left--
    if ((kind != 4 && kind != 5) || words < begun + 3) { print; next }
    # A field: its name, type and place.
    field = int((words - begun - 3) / 3)
    text[field] = (words - begun) % 3 == 0 ? $0 : text[field] "\n" $0
    place[field] = $2
    if (left > 0) next
    for (i = 0; i < members; i++) {
        for (j = i; j > 0 && place[order[j - 1]] + 0 > place[i] + 0; j--) order[j] = order[j - 1]
        order[j] = i
    }
    for (i = 0; i < members; i++) print text[order[i]]
}

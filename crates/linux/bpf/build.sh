#!/bin/sh
# Builds the BPF programs: build.sh OUT [NAME...] writes OUT/NAME.bpf.o for each NAME.bpf.c here, or
# for those that are named. LAW=twin builds them on xcp-twin.c instead of the Rust laws.
# What ends in -vcp or -pxcp is built on vcp.rs or pxcp.rs, the others on laws.rs.
# Needs, on Debian: apt-get install rustc-web libstd-rust-web-dev-bpf clang-19 llvm-19 bpftool libbpf-dev
set -eu
bpf=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
out=$(cd "$1" && pwd)
shift
[ $# -gt 0 ] || set -- $(cd "$bpf" && ls ./*.bpf.c | sed 's|./\(.*\)\.bpf\.c|\1|')
law=${LAW:-rust}
# No path of this machine in an object: the same sources give the same bytes everywhere. The compiler
# finds sources by the paths that it writes, so it runs where those lead to them.
cd "$bpf/.."
clang="clang-19 -O2 -g -Wall -Werror -target bpf -mcpu=v3 -I/usr/include/$(uname -m)-linux-gnu
  -fdebug-compilation-dir=."

# 1. The laws to BPF assembly text, which any clang reads; objects and bitcode are tied to versions.
#    Most of the library is not called from here, hence dead_code. Subprograms of one program must
#    lie in one section, which only an unstable option says for functions that Rust keeps to itself.
#    Debian's compiler: rustup's cannot build this target's core library.
# rust FILE: FILE.rs to FILE.o
rust() {
    (cd "$out" && # where the compiler keeps its intermediate files
        RUSTC_BOOTSTRAP=1 "${RUSTC_BPF:-/usr/bin/rustc}" --edition 2024 --target bpfel-unknown-none \
            -C target-cpu=v3 -C opt-level=3 -C panic=abort -C codegen-units=1 -C debuginfo=2 \
            -C overflow-checks=no -C symbol-mangling-version=v0 -Z function-sections=no \
            --remap-path-prefix "${bpf%/linux/bpf}=crates" --remap-path-prefix "$out=out" \
            --crate-name laws --crate-type lib -A dead_code -A unused_imports --emit "asm=$out/$1.s" "$bpf/$1.rs")

    # 2. No reachable panic: a law that could panic would call for it.
    if grep -n panicking "$out/$1.s" >&2; then
        echo "the laws can panic" >&2
        exit 1
    fi

    # 3. Made fit for clang-19 and the BPF linker:
    #    - inner functions by the plain name that their type information has, not the mangled one;
    #    - all functions hidden: subprograms of their caller to the verifier;
    #    - the 32-bit move that clears the upper half, printed as "r1 = w2", in its older spelling;
    #    - no text of source lines in the line information (its third word): the library's would be there
    #      where its sources are installed.
    sed -e '/\.ascii\|\.asciz/!s/\b_R[A-Za-z0-9_]*[0-9]\([a-z][a-z_]*\)\b/\1/g' \
        -e 's/^\(\t*\)r\([0-9]\) = w\([0-9]\)$/\1w\2 = w\3/' \
        -e '/\.BTF\.ext/,$ { /\.long\t\.Ltmp/ { n; n; s/[0-9]*$/0/; } }' "$out/$1.s" >"$out/plain.s"
    sed -n 's/^\t\.globl\t/.hidden /p' "$out/plain.s" >"$out/hidden.s"
    cat "$out/plain.s" "$out/hidden.s" >"$out/all.s"
    clang-19 -target bpf -mcpu=v3 -c "$out/all.s" -o "$out/$1.o"
}

# The laws that a shell is built on.
laws_of() {
    case $1 in
    *-vcp) echo vcp ;;
    *-pxcp) echo pxcp ;;
    *) echo laws ;;
    esac
}
families=$(for shell; do laws_of "$shell"; done | sort -u)

case $law in
rust)
    name="Rust, crates/core"
    for family in $families; do rust "$family"; done
    ;;
twin)
    name="C twin, xcp-twin.c"
    $clang -c bpf/xcp-twin.c -o "$out/laws.o"
    ;;
*)
    echo "LAW=$law: rust or twin" >&2
    exit 2
    ;;
esac

# 4. What C says of the laws' structures is what Rust's compiler made of them: sizes, places, names. A state is as large as
#    Rust's, and words to C.
layout() {
    bpftool btf dump file "$1" format raw | awk -f bpf/layout.awk | sort -u
}
# mirrored HEADER FILE: of FILE.rs
mirrored() {
    {
        [ "$2" != pxcp ] || echo '#define PXCP'
        echo "#include \"$1\""
        sed -n 's/^struct \([A-Za-z]*\) {.*/struct \1 \1_;/p' "bpf/$1"
    } >"$out/layout.c"
    $clang -Ibpf -c "$out/layout.c" -o "$out/layout.o"
    layout "$out/$2.o" >"$out/rust.txt"
    layout "$out/layout.o" >"$out/c.txt"
    while read -r struct size members; do
        # A structure that no function takes is C's own.
        grep -q "^$struct " "$out/rust.txt" || continue
        case $members in
        state@*) grep -q "^$struct $size " "$out/rust.txt" ;;
        *) grep -Fxq "$struct $size $members" "$out/rust.txt" ;;
        esac || {
            echo "$1: struct $struct is not what the laws have:" >&2
            echo "C     $struct $size $members" >&2
            grep "^$struct " "$out/rust.txt" | sed 's/^/Rust  /' >&2
            exit 1
        }
    done <"$out/c.txt"
}
header_of() {
    case $1 in
    laws | pxcp) echo law.h ;;
    *) echo "$1.h" ;;
    esac
}
[ "$law" != rust ] || for family in $families; do mirrored "$(header_of "$family")" "$family"; done

# What the bytes depend on beside the sources.
{
    "${RUSTC_BPF:-/usr/bin/rustc}" --version || true
    clang-19 --version | head -n 1
    llvm-strip-19 --version | sed -n 's/^ *\(.*LLVM version\)/\1/p'
    bpftool version | head -n 2
    dpkg-query -W -f '${Package} ${Version}\n' libbpf-dev linux-libc-dev 2>/dev/null || true
} >"$out/tools.txt"

# 5. The C shells, and the link, which compares the types of both sides.
for shell; do
    $clang "-DLAW_$law" -DLAW_NAME="\"$name\"" -c "bpf/$shell.bpf.c" -o "$out/$shell.shell.o"
    bpftool gen object "$out/$shell.bpf.o" "$out/$shell.shell.o" "$out/$(laws_of "$shell").o"
    llvm-strip-19 -g "$out/$shell.bpf.o"
done

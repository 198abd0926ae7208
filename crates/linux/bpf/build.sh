#!/bin/sh
# Builds the XCP laws as one BPF object: build.sh OUT LINK_WORDS SENDER_WORDS
# The words are the sizes of the states in the native build. Writes OUT/laws.bpf.o.
# Needs, on Debian: apt-get install rustc-web libstd-rust-web-dev-bpf clang-19 bpftool libbpf-dev
set -eu
out=$(cd "$1" && pwd)
link_words=$2
sender_words=$3
bpf=$(cd "$(dirname "$0")" && pwd)
cd "$out" # where the compiler keeps its intermediate files
# Debian's compiler: rustup's cannot build this target's core library.
rustc="${RUSTC_BPF:-/usr/bin/rustc} --edition 2024 --target bpfel-unknown-none -C target-cpu=v3 -C opt-level=3
  -C panic=abort -C codegen-units=1 -C debuginfo=2 -C overflow-checks=no"

# 1. The laws to BPF assembly text, which any clang reads; objects and bitcode are tied to versions.
#    Most of the library is not called from here, hence dead_code. Subprograms of one program must
#    lie in one section, which only an unstable option says for functions that Rust keeps to itself.
RUSTC_BOOTSTRAP=1 $rustc -Z function-sections=no -C symbol-mangling-version=v0 --crate-name laws --crate-type lib \
    -A dead_code --emit "asm=$out/laws.s" "$bpf/laws.rs"

# 2. No reachable panic: a law that could panic would call for it.
if grep -n panicking "$out/laws.s" >&2; then
    echo "the laws can panic" >&2
    exit 1
fi

# 3. Made fit for clang-19 and the BPF linker:
#    - inner functions by the plain name that their type information has, not the mangled one;
#    - all functions hidden: subprograms of their caller to the verifier;
#    - the 32-bit move that clears the upper half, printed as "r1 = w2", in its older spelling.
sed -e '/\.ascii\|\.asciz/!s/\b_R[A-Za-z0-9_]*[0-9]\([a-z][a-z_]*\)\b/\1/g' \
    -e 's/^\(\t*\)r\([0-9]\) = w\([0-9]\)$/\1w\2 = w\3/' "$out/laws.s" >"$out/plain.s"
sed -n 's/^\t\.globl\t/.hidden /p' "$out/plain.s" >"$out/hidden.s"
cat "$out/plain.s" "$out/hidden.s" >"$out/all.s"
clang-19 -target bpf -mcpu=v3 -c "$out/all.s" -o "$out/laws.o"

# 4. The C shell, and the link, which compares the types of both sides.
clang-19 -O2 -g -Wall -Werror -target bpf -mcpu=v3 -I"/usr/include/$(uname -m)-linux-gnu" \
    -DLINK_WORDS="$link_words" -DSENDER_WORDS="$sender_words" -c "$bpf/stream.bpf.c" -o "$out/shell.o"
bpftool gen object "$out/laws.bpf.o" "$out/shell.o" "$out/laws.o"

#!/bin/sh
# Builds the BPF programs: build.sh OUT [NAME...] writes OUT/NAME.bpf.o for each NAME.bpf.c here and for each law of
# the list whose router needs no program of its own, or for those that are named. LAW=twin builds them on xcp-twin.c
# instead of the Rust laws.
# What ends in -vcp or -pxcp is built on vcp.rs or pxcp.rs, what ends in -dpcp or -tpcp on vcp.rs with chains of two or three,
# what ends in -xcpr on laws.rs with a window that the receiver keeps, what ends in -beside on it with a census of flows, what ends in -police with a
# policer, what ends in -percpu with the link's law in parts, and host-dctcp, host-prague and host-abc on marks.rs.
# router-NAME is router-law.bpf.c on link.rs.in with the link law NAME of the list, or router-queue.bpf.c on queue.rs.in with the
# queue law NAME of those that judge before a queue; with ROOT and OWN set, on the crate root in the file ROOT and its type OWN. All others are built
# on laws.rs.
# Needs, on Debian: apt-get install rustc-web libstd-rust-web-dev-bpf clang-19 llvm-19 bpftool libbpf-dev
set -eu
bpf=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
out=$(cd "$1" && pwd)
shift
# The link laws of the list that run in the program for any law, each with its type; of HPCC's two the one whose telemetry is in a
# TCP option, where that program looks. For SCONE's header it looks elsewhere (router-scone.bpf.c).
listed=$(echo csig hpcc::Link && sed -n 's/^    \([a-z0-9_]*\) {.* link [A-Za-z0-9]*(super::\([A-Za-z0-9_:]*\)).*/\1 \2/p' \
    "$bpf/../../core/src/law/list.rs" | grep -v '^xcp \|^pxcp \|^xcp2 \|^mpcp \|^hpcc ')
# The queue laws that judge before a queue, likewise.
queues=$(sed -n 's/^    "\([a-z0-9]*\)" [A-Za-z0-9]*(super::\([A-Za-z0-9_:]*\)),$/\1 \2/p' "$bpf/../../core/src/law/queue/list.rs")
if [ $# -eq 0 ]; then
    set -- $(cd "$bpf" && ls ./*.bpf.c | sed -n '/-law\.bpf\.c$\|-queue\.bpf\.c$/d; s|./\(.*\)\.bpf\.c|\1|p') \
        $({ echo "$listed" | sed '/^scone /d' && echo "$queues"; } | sed 's/\(.*\) .*/router-\1/')
fi
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
# any_law FAMILY: writes a crate with the link law NAME of any-NAME, or the queue law of queue-NAME, and says where.
any_law() {
    shell=link modules="law units"
    case $1 in queue-*) shell=queue modules="law law/queue units" ;; esac
    if [ -n "${ROOT:-}" ]; then
        cp "$ROOT" "$out/$1.rs"
        own=$OWN
    else
        own=$({ [ $shell = link ] && echo "$listed" | sed 's/ / law::/' || echo "$queues" | sed 's/ / queue::/'; } |
            sed -n "s/^${1#*-} /crate::/p")
        [ -n "$own" ] || {
            echo "${1#*-}: no link law of the list that the router's program for any law is built with" >&2
            exit 1
        }
        {
            echo '#![no_std]'
            echo 'extern crate self as congestlab_core;'
            for module in $modules; do
                echo "#[path = \"$bpf/../../core/src/$module/mod.rs\"]"
                echo "mod ${module#*/};"
            done
        } >"$out/$1.rs"
    fi
    {
        echo '#[macro_use]'
        echo "#[path = \"$bpf/exported.rs\"]"
        echo 'mod exported;'
        echo "#[path = \"$bpf/told.rs\"]"
        echo 'mod told;'
        default="Default::default()"
        case $1 in any-csig) default="crate::law::hpcc::LinkConfig::of(crate::law::hpcc::Telemetry::Csig)" ;; esac
        sed "s/OWN/$own/; s/DEFAULT/$default/" "$bpf/$shell.rs.in"
    } >>"$out/$1.rs"
    echo "$out/$1.rs"
}

# rust FILE: FILE.rs to FILE.o
rust() {
    root=$bpf/$1.rs flags=
    case $1 in
    dpcp) root=$bpf/vcp.rs flags="--cfg chains" ;;
    xcpr) root=$bpf/laws.rs flags="--cfg window" ;;
    # Of the queue laws beside the census nothing is there, as with those below.
    beside) root=$bpf/laws.rs flags="--cfg classes -Zcross-crate-inline-threshold=always" ;;
    police | percpu) root=$bpf/laws.rs flags="--cfg $1" ;;
    tpcp) root=$bpf/vcp.rs flags="--cfg chains --cfg three" ;;
    dctcp | prague | abc) root=$bpf/marks.rs flags="--cfg $1" ;;
    any-* | queue-*)
        root=$(any_law "$1")
        # What one function calls of another lies in the one that calls, and nothing else is there.
        flags="-Zcross-crate-inline-threshold=always ${ROOT:+--cfg feature=\"words\"}"
        ;;
    esac
    (cd "$out" && # where the compiler keeps its intermediate files
        RUSTC_BOOTSTRAP=1 "${RUSTC_BPF:-/usr/bin/rustc}" --edition 2024 --target bpfel-unknown-none \
            -C target-cpu=v3 -C opt-level=3 -C panic=abort -C codegen-units=1 -C debuginfo=2 \
            -C overflow-checks=no -C symbol-mangling-version=v0 -Z function-sections=no $flags \
            --remap-path-prefix "${bpf%/linux/bpf}=crates" --remap-path-prefix "$out=out" \
            --crate-name laws --crate-type lib -A dead_code -A unused_imports --emit "asm=$out/$1.s" "$root")

    # 2. No reachable panic: a law that could panic would call for it.
    if grep -n panicking "$out/$1.s" >&2; then
        echo "the laws can panic" >&2
        exit 1
    fi

    # 3. Made fit for clang-19 and the BPF linker:
    #    - inner functions by the plain name that their type information has, not the mangled one;
    #    - all functions hidden: subprograms of their caller to the verifier;
    #    - the 32-bit move that clears the upper half, printed as "r1 = w2", in its older spelling;
    #    - type information as kernels take it (btf.awk);
    #    - no text of source lines in the line information (its third word): the library's would be there
    #      where its sources are installed.
    sed -e '/\.ascii\|\.asciz/!s/\b_R[A-Za-z0-9_]*[0-9]\([a-z][a-z_]*\)\b/\1/g' \
        -e 's/^\(\t*\)r\([0-9]\) = w\([0-9]\)$/\1w\2 = w\3/' \
        -e '/\.BTF\.ext/,$ { /\.long\t\.Ltmp/ { n; n; s/[0-9]*$/0/; } }' "$out/$1.s" |
        awk -f bpf/btf.awk >"$out/plain.s"
    sed -n 's/^\t\.globl\t/.hidden /p' "$out/plain.s" >"$out/hidden.s"
    cat "$out/plain.s" "$out/hidden.s" >"$out/all.s"
    clang-19 -target bpf -mcpu=v3 -c "$out/all.s" -o "$out/$1.o"
}

# has_own SHELL: it is a program of certain laws.
has_own() {
    [ -f "bpf/$1.bpf.c" ] && [ "${1#*-}" != law ] && [ "${1#*-}" != queue ]
}
# is_queue SHELL: its law judges before a queue.
is_queue() {
    [ -z "${ROOT:-}" ] && echo "$queues" | grep -q "^${1#*-} "
}
# The laws that a shell is built on.
laws_of() {
    if ! has_own "$1"; then
        if is_queue "$1"; then echo "queue-${1#*-}"; else echo "any-${1#*-}"; fi
        return
    fi
    case $1 in
    *-scone) echo any-scone ;;
    *-vcp) echo vcp ;;
    *-dpcp) echo dpcp ;;
    *-tpcp) echo tpcp ;;
    *-pxcp) echo pxcp ;;
    *-xcpr) echo xcpr ;;
    *-beside) echo beside ;;
    *-police) echo police ;;
    *-percpu) echo percpu ;;
    *-dctcp | *-prague | *-abc) echo "${1#*-}" ;;
    *) echo laws ;;
    esac
}
source_of() {
    if has_own "$1"; then
        echo "bpf/$1.bpf.c"
    elif is_queue "$1"; then
        echo "bpf/${1%%-*}-queue.bpf.c"
    else
        echo "bpf/${1%%-*}-law.bpf.c"
    fi
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

# 4. What C sees of the laws, sizes, places, names and prototypes, is what Rust's compiler made of them. Those of the programs
#    here are committed, for the C twin has no Rust beside it; HEADERS=write writes them, else they must be right.
for family in $([ "$law" != rust ] || echo "$families"); do
    case $family in
    laws) header=law.h source=laws.rs ;;
    any-*) header=$family.h source=link.rs.in ;;
    queue-*) header=$family.h source=queue.rs.in ;;
    dpcp | tpcp) header=$family.h source=vcp.rs ;;
    xcpr | beside | police | percpu) header=$family.h source=laws.rs ;;
    dctcp | prague | abc) header=$family.h source=marks.rs ;;
    *) header=$family.h source=$family.rs ;;
    esac
    bpftool btf dump file "$out/$family.o" format raw |
        awk -v opaque="Link Part Sender Police" -v source="$source" -f bpf/header.awk >"$out/$header"
    case $family in any-* | queue-*) continue ;; esac
    if [ "${HEADERS:-}" = write ]; then
        cp "$out/$header" "bpf/$header"
    elif ! diff "bpf/$header" "$out/$header" >&2; then
        echo "$header is not what the laws have: make bpf" >&2
        exit 1
    fi
done

# What the bytes depend on beside the sources.
{
    "${RUSTC_BPF:-/usr/bin/rustc}" --version || true
    clang-19 --version | head -n 1
    llvm-strip-19 --version | sed -n 's/^ *\(.*LLVM version\)/\1/p'
    bpftool version | head -n 2
    dpkg-query -W -f '${Package} ${Version}\n' libbpf-dev linux-libc-dev 2>/dev/null || true
} >"$out/tools.txt"

# What the command embeds: the laws of the lists whose router is the one for any link law, or for any queue law.
for kind in any queue; do
    for shell; do
        case $(laws_of "$shell") in "$kind"-*) echo "(\"${shell#router-}\", include_bytes!(\"$shell.bpf.o\"))," ;; esac
    done | { echo "&["; sed 's/^/    /'; echo "]"; } >"$out/$([ $kind = any ] && echo routers || echo queues).rs"
done

# 5. The C shells, and the link, which compares the types of both sides.
for shell; do
    family=$(laws_of "$shell")
    $clang "-DLAW_$law" -DLAW_NAME="\"$name\"" -DLINK_H="\"$family.h\"" -I"$out" -c "$(source_of "$shell")" \
        -o "$out/$shell.shell.o"
    bpftool gen object "$out/$shell.bpf.o" "$out/$shell.shell.o" "$out/$family.o"
    llvm-strip-19 -g "$out/$shell.bpf.o"
done

//! The programs beside the types of a kernel before 6.10, Debian 12's Linux 6.1 (`btf/README.md`):
//! whether they would find there what they read, write, and call. Nothing is loaded or run.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::{env, fs, process};

use congestlab_linux::Error;
use congestlab_linux::host::form::Form;
use libbpf_rs::btf::types::{
    Array, Enum, Func, FuncProto, Int, MemberAttr, Ptr, Struct, StructMember, Union,
};
use libbpf_rs::btf::{Btf, BtfKind, BtfType, TypeId};
use libbpf_rs::{HasSize as _, ReferencesType as _};

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn old_bytes() -> Vec<u8> {
    fs::read(here("tests/btf/linux-6.1.btf")).unwrap()
}

fn parse(bytes: &[u8], test: &str) -> Btf<'static> {
    let path = env::temp_dir().join(format!("congestlab-{test}-{}", process::id()));
    fs::write(&path, bytes).unwrap();
    let btf = Btf::from_path(&path);
    fs::remove_file(&path).unwrap();
    btf.unwrap()
}

/// The same kernel, but that something has another name.
fn without(name: &str, test: &str) -> Btf<'static> {
    let mut bytes = old_bytes();
    let name = [b"\0", name.as_bytes(), b"\0"].concat();
    let places: Vec<_> = (0..bytes.len() - name.len()).filter(|at| bytes[*at..].starts_with(&name)).collect();
    let [at] = places[..] else { panic!("{places:?}") };
    bytes[at + 1] = b'_';
    parse(&bytes, test)
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> usize {
    let mut word = [0; 8];
    word[..N].copy_from_slice(&bytes[at..at + N]);
    u64::from_le_bytes(word) as usize
}

fn string(bytes: &[u8], at: usize) -> &str {
    let length = bytes[at..].iter().position(|byte| *byte == 0).unwrap();
    str::from_utf8(&bytes[at..at + length]).unwrap()
}

/// What the linker wrote.
struct Symbol {
    name: String,
    section: usize,
    at: Range<usize>,
    is_weak: bool,
}

/// An object of ours: ELF, 64 bits, little endian.
struct Object {
    bytes: Vec<u8>,
    btf: Btf<'static>,
}

impl Object {
    fn open(name: &str) -> Self {
        let path = here("bpf/objects").join(name);
        Self { bytes: fs::read(&path).unwrap(), btf: Btf::from_path(&path).unwrap() }
    }

    /// Its header and place.
    fn section_at(&self, index: usize) -> (usize, Range<usize>) {
        let header = number::<8>(&self.bytes, 0x28) + index * number::<2>(&self.bytes, 0x3a);
        let start = number::<8>(&self.bytes, header + 0x18);
        (header, start..start + number::<8>(&self.bytes, header + 0x20))
    }

    fn find(&self, name: &str) -> (usize, &[u8]) {
        let names = self.section_at(number::<2>(&self.bytes, 0x3e)).1.start;
        let mut all = 0..number::<2>(&self.bytes, 0x3c);
        let found = all.find(|index| {
            let (header, _) = self.section_at(*index);
            string(&self.bytes, names + number::<4>(&self.bytes, header)) == name
        });
        let index = found.unwrap_or_else(|| panic!("no section {name}"));
        (index, &self.bytes[self.section_at(index).1])
    }

    fn section(&self, name: &str) -> &[u8] {
        self.find(name).1
    }

    fn symbols(&self) -> Vec<Symbol> {
        let names = self.section(".strtab");
        let read = |entry: &[u8]| {
            let start = number::<8>(entry, 8);
            Symbol {
                name: string(names, number::<4>(entry, 0)).into(),
                section: number::<2>(entry, 6),
                at: start..start + number::<8>(entry, 16),
                is_weak: entry[4] >> 4 == 2, // STB_WEAK
            }
        };
        self.section(".symtab").chunks(24).map(read).collect()
    }

    /// Functions of the kernel that it calls by name, and whether it can do without.
    fn externs(&self) -> Vec<Symbol> {
        self.symbols().into_iter().filter(|symbol| symbol.section == 0 && !symbol.name.is_empty()).collect()
    }

    /// Programs of a congestion control, by the member that they serve.
    fn callbacks(&self, map: &str) -> Vec<(String, Symbol)> {
        let layout = self.btf.type_by_name::<Struct<'_>>("tcp_congestion_ops").unwrap();
        let at = |at| layout.iter().find(|member| offset(member) == 8 * at as u32);
        let symbols = self.symbols();
        let map = symbols.iter().find(|symbol| symbol.name == map).unwrap().at.clone();
        let entries = self.section(".rel.struct_ops.link").chunks(16);
        let here = entries.filter(|entry| map.contains(&number::<8>(entry, 0)));
        here.map(|entry| {
            let member = at(number::<8>(entry, 0) - map.start).unwrap();
            (name(member.name), self.symbols().swap_remove(number::<4>(entry, 12)))
        })
        .collect()
    }

    /// Those that the loader makes fit: offsets of fields, sizes, numbers of types.
    fn relocations(&self) -> Vec<Relocation> {
        let ext = self.section(".BTF.ext");
        let local = self.section(".BTF");
        let strings = &local[number::<4>(local, 4) + number::<4>(local, 16)..];
        let start = number::<4>(ext, 4) + number::<4>(ext, 24);
        let all = &ext[start..start + number::<4>(ext, 28)];
        let size = number::<4>(all, 0);
        let (mut at, mut relocations) = (4, vec![]);
        while at < all.len() {
            let count = number::<4>(all, at + 4);
            at += 8;
            relocations.extend(all[at..at + count * size].chunks(size).map(|record| Relocation {
                ty: (number::<4>(record, 4) as u32).into(),
                path:
                    string(strings, number::<4>(record, 8)).split(':').map(|i| i.parse().unwrap()).collect(),
                kind: number::<4>(record, 12),
            }));
            at += count * size;
        }
        relocations
    }
}

/// `struct bpf_core_relo` of `linux/bpf.h`.
struct Relocation {
    ty: TypeId,
    path: Vec<usize>,
    kind: usize,
}

fn name(name: Option<&std::ffi::OsStr>) -> String {
    name.map_or(String::new(), |name| name.to_str().unwrap().into())
}

fn offset(member: &StructMember<'_>) -> u32 {
    match member.attr {
        MemberAttr::Normal { offset } | MemberAttr::BitField { offset, .. } => offset,
    }
}

/// Names and types of the members of a structure or union.
fn members<'btf>(ty: BtfType<'btf>) -> Option<Vec<(String, TypeId)>> {
    match ty.kind() {
        BtfKind::Struct => {
            let ty = Struct::try_from(ty).ok()?;
            Some(ty.iter().map(|member| (name(member.name), member.ty)).collect())
        }
        BtfKind::Union => {
            let ty = Union::try_from(ty).ok()?;
            Some(ty.iter().map(|member| (name(member.name), member.ty)).collect())
        }
        _ => None,
    }
}

fn plain<'btf>(btf: &'btf Btf<'_>, id: TypeId) -> Option<BtfType<'btf>> {
    Some(btf.type_by_id::<BtfType<'_>>(id)?.skip_mods_and_typedefs())
}

/// The type of a member by its name, as the loader looks for it: also in what has no name.
fn member<'btf>(btf: &'btf Btf<'_>, ty: BtfType<'btf>, wanted: &str) -> Option<BtfType<'btf>> {
    members(ty)?.into_iter().find_map(|(name, id)| match plain(btf, id)? {
        ty if name == wanted => Some(ty),
        ty if name.is_empty() => member(btf, ty, wanted),
        _ => None,
    })
}

/// Whether the loader takes one for the other (`bpf_core_fields_are_compat` of libbpf).
fn is_alike(ours: &Btf<'_>, our: BtfType<'_>, theirs: &Btf<'_>, their: BtfType<'_>) -> bool {
    match (our.kind(), their.kind()) {
        (BtfKind::Struct | BtfKind::Union, BtfKind::Struct | BtfKind::Union) => true,
        (BtfKind::Array, BtfKind::Array) => {
            let element = |btf, ty| plain(btf, Array::try_from(ty).unwrap().ty());
            let (Some(our), Some(their)) = (element(ours, our), element(theirs, their)) else { return false };
            is_alike(ours, our, theirs, their)
        }
        (our, their) => our == their && matches!(our, BtfKind::Int | BtfKind::Ptr | BtfKind::Enum),
    }
}

/// The field or type in words, and whether it is there.
fn resolve(object: &Object, relocation: &Relocation, kernel: &Btf<'_>) -> (String, bool) {
    let mut our = plain(&object.btf, relocation.ty).unwrap();
    let mut words = name(our.name());
    let mut their = kernel.type_by_name::<Struct<'_>>(&words).map(|ty| *ty);
    if relocation.kind > 5 {
        return (words, their.is_some());
    }
    for index in &relocation.path[1..] {
        let (name, id) = members(our).unwrap().swap_remove(*index);
        our = plain(&object.btf, id).unwrap();
        if !name.is_empty() {
            words += &format!(".{name}");
            their = their.and_then(|their| member(kernel, their, &name));
            their = their.filter(|their| is_alike(&object.btf, our, kernel, *their));
        }
    }
    (words, their.is_some())
}

/// What the object wants and a kernel has not; and how much it wants.
fn missing(object: &Object, kernel: &Btf<'_>) -> (BTreeSet<String>, usize) {
    let all: BTreeSet<_> = object.relocations().iter().map(|one| resolve(object, one, kernel)).collect();
    let count = all.len();
    (all.into_iter().filter(|(_, is_there)| !is_there).map(|(words, _)| words).collect(), count)
}

/// The arguments that a program takes out of its context, by their numbers. It does so before all else.
fn arguments(code: &[u8]) -> BTreeSet<usize> {
    let mut context = BTreeSet::from([1]); // registers that hold it
    let mut taken = BTreeSet::new();
    for instruction in code.chunks(8) {
        let (operation, to, from) = (instruction[0], instruction[1] & 15, instruction[1] >> 4);
        let is_load = operation & 7 == 1;
        if is_load && context.contains(&from) {
            taken.insert(number::<2>(instruction, 2) / 8);
        }
        if operation == 0xbf && context.contains(&from) {
            context.insert(to);
        } else if operation == 0x85 {
            context.retain(|register| *register > 5); // a call
        } else if is_load || matches!(operation & 7, 0 | 4 | 7) {
            context.remove(&to);
        }
    }
    taken
}

/// Such as `*sock` or `u1`, by its bytes.
fn argument(kernel: &Btf<'_>, ty: BtfType<'_>) -> String {
    let ty = ty.skip_mods_and_typedefs();
    if let Ok(pointer) = Ptr::try_from(ty) {
        return format!("*{}", name(pointer.referenced_type().skip_mods_and_typedefs().name()));
    }
    let int = kernel.type_by_id::<Int<'_>>(ty.type_id());
    int.map_or("?".into(), |int| format!("u{}", int.size()))
}

#[test]
fn a_kernel_before_6_10_gets_the_form_of_two_arguments() {
    let test = "a_kernel_before_6_10_gets_the_form_of_two_arguments";
    let form = Form::of(&parse(&old_bytes(), test)).unwrap();
    assert_eq!(form, Form { control: "congestlab_old", has_casts: false });
    for name in ["bpf_struct_ops_tcp_congestion_ops", "tcp_congestion_ops", "cong_control"] {
        let refused = Form::of(&without(name, test));
        assert!(matches!(refused, Err(Error::Missing { .. })), "without {name}: {refused:?}");
    }
}

#[test]
fn the_old_form_sets_members_that_are_there_with_what_they_are_given() {
    let test = "the_old_form_sets_members_that_are_there_with_what_they_are_given";
    let kernel = parse(&old_bytes(), test);
    let object = Object::open("host.bpf.o");
    let operations = kernel.type_by_name::<Struct<'_>>("tcp_congestion_ops").unwrap();
    let (index, code) = object.find("struct_ops");
    // What the programs of host.bpf.c say that they are given, and which of it they use.
    let mut ours = vec![
        ("cong_control", "xcp_old_control", vec!["*sock", "*rate_sample"]),
        ("init", "xcp_init", vec!["*sock"]),
        ("min_tso_segs", "xcp_min_tso_segs", vec!["*sock"]),
        ("release", "xcp_release", vec!["*sock"]),
        ("set_state", "xcp_set_state", vec!["*sock", "u1"]),
        ("sndbuf_expand", "xcp_sndbuf_expand", vec!["*sock"]),
        ("ssthresh", "xcp_ssthresh", vec!["*sock"]),
        ("undo_cwnd", "xcp_undo_cwnd", vec!["*sock"]),
    ];
    let mut callbacks = object.callbacks("congestlab_old");
    callbacks.sort_by(|one, other| one.0.cmp(&other.0));
    for (member, program) in callbacks {
        let (expected, function, takes) = ours.remove(0);
        assert_eq!((&*member, &*program.name), (expected, function));
        assert_eq!(program.section, index);
        let given = operations.iter().find(|other| other.name == Some(member.as_ref()));
        let given = given.unwrap_or_else(|| panic!("no {member}"));
        let pointer = kernel.type_by_id::<Ptr<'_>>(given.ty).unwrap();
        let prototype = FuncProto::try_from(pointer.referenced_type()).unwrap();
        let given: Vec<_> = prototype
            .iter()
            .map(|given| argument(&kernel, kernel.type_by_id::<BtfType<'_>>(given.ty).unwrap()))
            .collect();
        assert_eq!(given, takes, "{member}");
        let taken = arguments(&code[program.at]);
        assert!(taken.iter().all(|number| *number < takes.len()), "{member}: {taken:?}");
        if member == "cong_control" || member == "set_state" {
            assert_eq!(taken, BTreeSet::from([0, 1]), "{member}");
        }
    }
    assert!(ours.is_empty(), "{ours:?}");
    // The form of today takes its fourth argument: what this finds is not for all of them the same.
    let new = object.callbacks("congestlab_xcp").into_iter().find(|(member, _)| member == "cong_control");
    assert_eq!(arguments(&code[new.unwrap().1.at]), BTreeSet::from([0, 3]));

    for (name, bytes) in [("name", 16), ("flags", 4)] {
        let field = operations.iter().find(|member| member.name == Some(name.as_ref())).unwrap();
        let ty = plain(&kernel, field.ty).unwrap();
        let size = match Array::try_from(ty) {
            Ok(array) => array.capacity(),
            Err(ty) => Int::try_from(ty).unwrap().size(),
        };
        assert_eq!(size, bytes, "{name}");
    }
}

#[test]
fn every_field_that_the_programs_read_is_there() {
    let test = "every_field_that_the_programs_read_is_there";
    let kernel = parse(&old_bytes(), test);
    for (name, least) in [
        ("host.bpf.o", 25),
        ("router.bpf.o", 3),
        ("router-police.bpf.o", 3),
        ("host-xcpr.bpf.o", 25),
        ("host-vcp.bpf.o", 25),
        ("router-vcp.bpf.o", 3),
        ("host-dpcp.bpf.o", 25),
        ("host-dctcp.bpf.o", 25),
        ("host-abc.bpf.o", 25),
        ("router-dpcp.bpf.o", 3),
    ] {
        let (missing, count) = missing(&Object::open(name), &kernel);
        assert!(missing.is_empty() && count >= least, "{name}: {missing:?} of {count}");
    }
    // It would be noticed.
    let host = Object::open("host.bpf.o");
    let gone: [(&str, &[&str]); 2] = [
        ("snd_cwnd_clamp", &["tcp_sock.snd_cwnd_clamp"]),
        ("rate_sample", &["rate_sample.losses", "rate_sample.rtt_us"]),
    ];
    for (name, wanted) in gone {
        let (missing, _) = missing(&host, &without(name, test));
        assert_eq!(missing, wanted.iter().map(|&field| field.to_owned()).collect());
    }
}

#[test]
fn every_helper_that_the_host_calls_is_there() {
    let kernel = parse(&old_bytes(), "every_helper_that_the_host_calls_is_there");
    let helpers = kernel.type_by_name::<Enum<'_>>("bpf_func_id").unwrap();
    let known: BTreeSet<_> = helpers.iter().map(|helper| helper.value as usize).collect();
    let host = Object::open("host.bpf.o");
    let mut called = BTreeSet::new();
    for section in [".text", "struct_ops", "sockops", "tc"] {
        let calls = host.section(section).chunks(8).filter(|code| code[0] == 0x85 && code[1] >> 4 == 0);
        called.extend(calls.map(|code| number::<4>(code, 4)));
    }
    assert!(called.is_subset(&known), "{called:?}");
    // bpf_store_hdr_opt, of the newest: Linux 5.10.
    assert!(called.contains(&143) && known.len() > 200, "{called:?}");
}

/// Functions that are called by name are of Linux 6.2. The host does without; the router can not, it
/// would not see its queue.
#[test]
fn only_the_router_needs_what_came_with_6_2() {
    let kernel = parse(&old_bytes(), "only_the_router_needs_what_came_with_6_2");
    let needs = |name: &str| {
        let externs = Object::open(name).externs();
        assert!(!externs.is_empty(), "{name}");
        let strict = externs.into_iter().filter(|symbol| !symbol.is_weak).map(|symbol| symbol.name);
        let there = |name: &String| kernel.type_by_name::<Func<'_>>(name).is_some();
        strict.filter(|name| !there(name)).collect::<Vec<_>>()
    };
    assert_eq!(needs("host.bpf.o"), Vec::<String>::new());
    assert_eq!(needs("host-xcpr.bpf.o"), Vec::<String>::new());
    assert_eq!(needs("router.bpf.o"), ["bpf_cast_to_kern_ctx"]);
    assert_eq!(needs("router-police.bpf.o"), ["bpf_cast_to_kern_ctx"]);
}

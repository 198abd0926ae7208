//! Import cycles of each crate: files that can only be understood together. Held against the sources, because a cycle grows by one
//! import at a time.
//!
//! A node is a source file. An edge is a `use` or a path outside tests that ends at an item; a re-exported name counts for the file
//! that defines it. Edges between a module and its own parent or child do not count. Tokens in the calls of macros are read as
//! paths where they look like some. `CYCLES=show cargo test --test cycles -- --nocapture` prints the files of each cycle, and the
//! cycles that parents and children add.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, Item, UseTree};

/// Files in the cycles of each crate, the largest first. The numbers only become smaller: `[]` is the goal.
const CYCLES: [(&str, &[usize]); 10] = [
    ("core", &[]),
    ("net", &[]),
    ("sim", &[]),
    ("text", &[]),
    ("scenario", &[]),
    ("linux", &[]),
    ("lab", &[]),
    ("cli", &[]),
    ("python", &[]),
    ("playground", &[]),
];

/// Names by which a file calls another.
type Edges<'a> = BTreeMap<&'a Path, BTreeMap<&'a Path, BTreeSet<&'a str>>>;

/// Segments from the root of the crate.
type Place = Vec<String>;

/// A module of a crate.
#[derive(Default)]
struct Module {
    file: PathBuf,
    items: BTreeSet<String>,
    /// Names that `use` brings in, with the paths that they stand for.
    names: BTreeMap<String, Place>,
    globs: Vec<Place>,
    /// Paths that code names.
    paths: BTreeSet<Place>,
}

#[derive(Default)]
struct Crate(BTreeMap<Place, Module>);

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Path>().is_ok_and(|path| path.is_ident("test"))
    })
}

/// The leaves of a tree of `use`, each with its name (`None`: a glob).
fn leaves(tree: &UseTree, before: &Place, found: &mut Vec<(Option<String>, Place)>) {
    let with = |name: &syn::Ident| [before.as_slice(), &[name.to_string()]].concat();
    match tree {
        UseTree::Path(path) => leaves(&path.tree, &with(&path.ident), found),
        UseTree::Name(name) if name.ident == "self" => found.push((before.last().cloned(), before.clone())),
        UseTree::Name(name) => found.push((Some(name.ident.to_string()), with(&name.ident))),
        UseTree::Rename(name) if name.ident == "self" => {
            found.push((Some(name.rename.to_string()), before.clone()));
        }
        UseTree::Rename(name) => found.push((Some(name.rename.to_string()), with(&name.ident))),
        UseTree::Glob(_) => found.push((None, before.clone())),
        UseTree::Group(group) => group.items.iter().for_each(|tree| leaves(tree, before, found)),
    }
}

/// Paths in the code of one module. What is in a module within it, or in tests, is left out.
struct Paths<'a> {
    module: &'a mut Module,
}

impl Paths<'_> {
    fn add_use(&mut self, tree: &UseTree) {
        let mut found = Vec::new();
        leaves(tree, &Place::new(), &mut found);
        for (name, path) in found {
            self.module.paths.insert(path.clone());
            match name {
                Some(name) => drop(self.module.names.insert(name, path)),
                None => self.module.globs.push(path),
            }
        }
    }

    /// Runs of words with `::` between them.
    fn add_tokens(&mut self, tokens: TokenStream) {
        let mut run = Place::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(ident) if run.is_empty() || colons == 2 => {
                    run.push(ident.to_string());
                    colons = 0;
                    continue;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' && !run.is_empty() => {
                    colons += 1;
                    continue;
                }
                TokenTree::Group(ref group) => self.add_tokens(group.stream()),
                _ => {}
            }
            self.module.paths.insert(std::mem::take(&mut run));
            colons = 0;
            if let TokenTree::Ident(ident) = token {
                run.push(ident.to_string());
            }
        }
        self.module.paths.insert(run);
    }
}

impl<'ast> Visit<'ast> for Paths<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        match item {
            Item::Mod(_) => {}
            Item::Use(item) if !is_test(&item.attrs) => self.add_use(&item.tree),
            Item::Fn(item) if is_test(&item.attrs) => {}
            Item::Impl(item) if is_test(&item.attrs) => {}
            _ => visit::visit_item(self, item),
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.module.paths.insert(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, called: &'ast syn::Macro) {
        self.visit_path(&called.path);
        self.add_tokens(called.tokens.clone());
    }
}

/// The name that an item has in its module.
fn name_of(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::TraitAlias(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        _ => return None,
    };
    Some(ident.to_string())
}

/// Names that the call of a macro defines, as far as its tokens show them: `record! { Name { ... } }`.
fn defined_by(call: &syn::Macro) -> Vec<String> {
    let tokens: Vec<TokenTree> = call.tokens.clone().into_iter().collect();
    let named = tokens.windows(2).filter_map(|two| match two {
        [TokenTree::Ident(ident), TokenTree::Group(_)] => Some(ident.to_string()),
        [TokenTree::Ident(word), TokenTree::Ident(ident)]
            if ["struct", "enum", "fn", "const", "type"].iter().any(|item| word == item) =>
        {
            Some(ident.to_string())
        }
        _ => None,
    });
    named.collect()
}

impl Crate {
    fn read(root: &Path) -> Self {
        let mut all = Self::default();
        let file = root.join("lib.rs");
        all.add_file(&file, Place::new(), root);
        all
    }

    fn add_file(&mut self, file: &Path, place: Place, below: &Path) {
        let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let parsed = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        self.add_module(file, place, &parsed.items, below);
    }

    fn add_module(&mut self, file: &Path, place: Place, items: &[Item], below: &Path) {
        let mut module = Module { file: file.into(), ..Module::default() };
        for item in items {
            module.items.extend(name_of(item));
            if let Item::Macro(item) = item {
                module.items.extend(defined_by(&item.mac));
            }
            Paths { module: &mut module }.visit_item(item);
        }
        for item in items {
            let Item::Mod(inner) = item else { continue };
            let name = inner.ident.to_string();
            if is_test(&inner.attrs) || name == "tests" {
                continue;
            }
            let place = [place.as_slice(), std::slice::from_ref(&name)].concat();
            let folder = below.join(&name);
            match &inner.content {
                Some((_, items)) => self.add_module(file, place, items, &folder),
                None => {
                    let given = inner.attrs.iter().find_map(|attribute| match &attribute.meta {
                        syn::Meta::NameValue(meta) if meta.path.is_ident("path") => match &meta.value {
                            syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) => {
                                Some(file.with_file_name(text.value()))
                            }
                            _ => None,
                        },
                        _ => None,
                    });
                    let flat = below.join(format!("{name}.rs"));
                    let file = given.unwrap_or(if flat.exists() { flat } else { folder.join("mod.rs") });
                    // A module that a build writes is elsewhere.
                    if file.exists() {
                        self.add_file(&file, place, &folder);
                    }
                }
            }
        }
        self.0.insert(place, module);
    }

    /// The place of the module that defines what a path in `from` names. `None`: nothing of this crate, or a module.
    fn definer(&self, from: &Place, path: &[String], depth: u32) -> Option<Place> {
        let (first, rest) = path.split_first()?;
        if depth > 20 {
            return None;
        }
        match first.as_str() {
            "crate" => return self.walk(&Place::new(), rest, depth),
            "self" => return self.walk(from, rest, depth),
            "super" => {
                let parent = &from[..from.len().checked_sub(1)?];
                return self.definer_below(&parent.to_vec(), rest, depth);
            }
            _ => {}
        }
        self.walk(from, path, depth)
    }

    fn definer_below(&self, at: &Place, rest: &[String], depth: u32) -> Option<Place> {
        if rest.first().is_some_and(|first| first == "super") {
            return self.definer(at, rest, depth + 1);
        }
        self.walk(at, rest, depth)
    }

    fn walk(&self, at: &Place, path: &[String], depth: u32) -> Option<Place> {
        let (first, rest) = path.split_first()?;
        let module = self.0.get(at)?;
        let child = [at.as_slice(), std::slice::from_ref(first)].concat();
        if self.0.contains_key(&child) {
            return self.walk(&child, rest, depth + 1);
        }
        if module.items.contains(first) {
            return Some(at.clone());
        }
        if let Some(stands_for) = module.names.get(first) {
            // `use x::y` in a file where `y` is also the first word of the path.
            let whole = [stands_for.as_slice(), rest].concat();
            if stands_for.first() != Some(first) || stands_for.len() > 1 {
                return self.definer(at, &whole, depth + 1);
            }
        }
        module.globs.iter().find_map(|glob| {
            let whole = [glob.as_slice(), path].concat();
            self.definer(at, &whole, depth + 1)
        })
    }

    /// Which file calls which, and by what names.
    fn edges(&self, with_family: bool) -> Edges<'_> {
        let mut edges = Edges::new();
        for (place, module) in &self.0 {
            for path in &module.paths {
                let Some(definer) = self.definer(place, path, 0) else { continue };
                let is_family = |a: &Place, b: &Place| a.len() == b.len() + 1 && a.starts_with(b);
                if !with_family && (is_family(place, &definer) || is_family(&definer, place)) {
                    continue;
                }
                let file = &self.0[&definer].file;
                if *file != module.file {
                    let names = edges.entry(&module.file).or_default().entry(file).or_default();
                    names.insert(path.last().map_or("", String::as_str));
                }
            }
        }
        edges
    }
}

/// Sets of files that reach each other, the largest first.
fn cycles<'a>(edges: &Edges<'a>) -> Vec<BTreeSet<&'a Path>> {
    let reached = |from: &'a Path| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
        while let Some(file) = open.pop() {
            for &next in edges.get(file).into_iter().flat_map(BTreeMap::keys) {
                if seen.insert(next) {
                    open.push(next);
                }
            }
        }
        seen
    };
    let reached: BTreeMap<&Path, BTreeSet<&Path>> = edges.keys().map(|&file| (file, reached(file))).collect();
    let mut left: BTreeSet<&Path> = edges.keys().copied().collect();
    let mut found = Vec::new();
    while let Some(file) = left.pop_first() {
        let both = |other: &&Path| {
            reached[file].contains(other) && reached.get(other).is_some_and(|all| all.contains(file))
        };
        let mut cycle: BTreeSet<&Path> = left.iter().copied().filter(both).collect();
        cycle.insert(file);
        left.retain(|other| !cycle.contains(other));
        if cycle.len() > 1 {
            found.push(cycle);
        }
    }
    found.sort_by_key(|cycle| usize::MAX - cycle.len());
    found
}

#[test]
fn no_import_cycle_grows() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let shows = std::env::var_os("CYCLES").is_some();
    let mut found = Vec::new();
    for (name, _) in CYCLES {
        let root = top.join(name).join("src");
        let all = Crate::read(&root);
        let edges = all.edges(false);
        let cycles = cycles(&edges);
        if shows {
            let with_family = all.edges(true);
            let sizes: Vec<usize> = self::cycles(&with_family).iter().map(BTreeSet::len).collect();
            println!("{name}: {} files; with parents and children: {sizes:?}", all.0.len());
            for cycle in &cycles {
                println!("  {} files:", cycle.len());
                for file in cycle {
                    let short = |path: &Path| path.strip_prefix(&root).unwrap_or(path).display().to_string();
                    for (other, names) in edges[file].iter().filter(|(other, _)| cycle.contains(*other)) {
                        println!("    {} -> {}: {names:?}", short(file), short(other));
                    }
                }
            }
        }
        found.push((name, cycles.iter().map(BTreeSet::len).collect::<Vec<_>>()));
    }
    let allowed = CYCLES.map(|(name, sizes)| (name, sizes.to_vec()));
    assert_eq!(found, allowed, "CYCLES=show prints them; where they became smaller, write that down");
}

//! Text in and out: TOML with the place of every word, findings, numbers for people, files on disk.
//!
//! [`tree`] reads TOML and keeps the place of each value, [`decode`] turns values into records whose keys are documented, and
//! [`diagnostic`] collects findings about them, with the line to show. [`number`] and [`cells`] write numbers for people,
//! [`printable`] shows what strangers wrote, and [`disk`] writes a file whole or not at all.
//!
//! ```
//! use congestlab_text::diagnostic::Findings;
//! use congestlab_text::tree::{self, Value};
//!
//! let mut findings = Findings::new(vec![]);
//! tree::add_source(&mut findings.sources, "link.toml", "rate = \"10 Mbit/s\"".into());
//! let root = tree::parse("rate = \"10 Mbit/s\"", &mut findings);
//! let Value::Table(table) = &root.value else { unreachable!("a file is a table") };
//! assert_eq!(table.keys().collect::<Vec<_>>(), ["rate"]);
//! assert!(!findings.has_errors());
//! ```
#![forbid(unsafe_code)]

pub mod cells;
pub mod decode;
pub mod diagnostic;
pub mod disk;
pub mod files;
pub mod number;
pub mod path;
pub mod printable;
pub mod tree;

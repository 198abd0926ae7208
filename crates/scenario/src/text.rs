//! Text in and out: TOML with the place of every word, findings, numbers for people, files on disk.

pub mod cells;
pub(crate) mod decode;
pub mod diagnostic;
pub mod disk;
pub(crate) mod files;
pub mod number;
pub(crate) mod path;
pub mod printable;
pub(crate) mod tree;

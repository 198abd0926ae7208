//! text
/// k
pub enum Kind {}
/// u
pub enum UnitError {}

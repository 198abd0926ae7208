//! Names the code that is built, as the command does: what one has finished, the other takes for finished.

#[path = "../cli/code.rs"]
mod code;

fn main() {
    // Used by the command alone.
    let _ = code::files;
    code::name("../..".as_ref(), "Cargo.lock".as_ref());
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The functions of laws that C can call in BPF: at most five words in, one word out. Every one lies in `.text`, as all
//! subprograms of one program must.

macro_rules! exported {
    ($(fn $name:ident($($argument:ident: $kind:ty),*) -> u64 $body:block)*) => {$(
        #[unsafe(no_mangle)]
        #[unsafe(link_section = ".text")]
        pub extern "C" fn $name($($argument: $kind),*) -> u64 $body
    )*};
}

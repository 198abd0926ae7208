//! A network that troubles the chains of VCP's family.

/// Two links with losses, reordering and flows over both; the chain's length and order as told.
pub(crate) fn network(law: &str, seed: u32) -> String {
    let link = |name: &str, more: &str| {
        format!(
            "[links.{name}]\nrate = \"4 Mbit/s\"\ndelay = \"50 ms\"\npacket_size = \"1000 B\"\nqueue = \"60 packets\"\nlaw = {law}\n{more}"
        )
    };
    let flow = |name: &str, path: &str, count: u32, more: &str| {
        format!("[flows.{name}]\nlaw = {law}\ncount = {count}\npath = {path}\nsegment = \"1000 B\"\n{more}")
    };
    format!("[run]\nduration = \"40 s\"\nseed = {seed}\n")
        + &link(
            "a",
            "error = { packet_error_rate = 0.01 }\nreorder = { probability = 0.01, delay = \"3 ms\" }\n",
        )
        + &link("b", "")
        + &flow("long", "[\"a\", \"b\"]", 4, "")
        + &flow("local", "[\"b\"]", 2, "app = { bursts = { size = \"30500 B\", pause = \"300 ms\" } }\n")
}

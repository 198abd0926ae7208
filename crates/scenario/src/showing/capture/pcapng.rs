//! Blocks of pcapng (draft-ietf-opsawg-pcapng), little-endian, as far as captures of one interface want them.

/// Code of a comment, in any block.
const COMMENT: u16 = 1;

/// Appends an option: its code, its length, and its value up to a multiple of four bytes.
fn option(block: &mut Vec<u8>, code: u16, value: &[u8]) {
    // The format has no longer ones.
    let value = &value[..value.len().min(u16::MAX.into())];
    block.extend(code.to_le_bytes());
    block.extend((value.len() as u16).to_le_bytes());
    padded(block, value);
}

fn padded(block: &mut Vec<u8>, bytes: &[u8]) {
    block.extend(bytes);
    block.resize(block.len().next_multiple_of(4), 0);
}

/// Appends a block: its type, its length, its content, and its length again.
fn block(file: &mut Vec<u8>, kind: u32, content: impl FnOnce(&mut Vec<u8>)) {
    let start = file.len();
    file.extend(kind.to_le_bytes());
    file.extend([0; 4]);
    content(file);
    let length = ((file.len() - start + 4) as u32).to_le_bytes();
    file[start + 4..start + 8].copy_from_slice(&length);
    file.extend(length);
}

/// Appends the header of a section of unknown length.
pub(super) fn section(file: &mut Vec<u8>, application: &str, comment: &str) {
    block(file, 0x0a0d_0d0a, |file| {
        file.extend(0x1a2b_3c4d_u32.to_le_bytes());
        file.extend([1, 0, 0, 0]);
        file.extend(u64::MAX.to_le_bytes());
        option(file, 4, application.as_bytes());
        option(file, COMMENT, comment.as_bytes());
        option(file, 0, &[]);
    });
}

/// Appends the description of an interface whose packets begin with the IP header and have stamps of 10^-9 s. `speed`: bit/s.
pub(super) fn interface(file: &mut Vec<u8>, name: &str, description: &str, speed: u64) {
    block(file, 1, |file| {
        // LINKTYPE_RAW, and no limit: what is kept of a packet depends on its headers.
        file.extend([101, 0, 0, 0]);
        file.extend([0; 4]);
        option(file, 2, name.as_bytes());
        option(file, 3, description.as_bytes());
        option(file, 8, &speed.to_le_bytes());
        option(file, 9, &[9]);
        option(file, 0, &[]);
    });
}

/// Appends a packet of the first interface: at `nanoseconds`, with `length` bytes on the wire, of which `kept` is the beginning.
pub(super) fn packet(file: &mut Vec<u8>, nanoseconds: u64, length: u32, kept: &[u8], comment: Option<&str>) {
    block(file, 6, |file| {
        file.extend([0; 4]);
        file.extend(((nanoseconds >> 32) as u32).to_le_bytes());
        file.extend((nanoseconds as u32).to_le_bytes());
        file.extend((kept.len() as u32).to_le_bytes());
        file.extend(length.to_le_bytes());
        padded(file, kept);
        if let Some(comment) = comment {
            option(file, COMMENT, comment.as_bytes());
            option(file, 0, &[]);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of a packet's block, and the lengths that a reader steps by.
    #[test]
    fn blocks_have_their_length_at_both_ends_and_begin_at_words() {
        let mut file = Vec::new();
        section(&mut file, "a", "bcdef");
        interface(&mut file, "link", "", 10_000_000);
        packet(&mut file, 0x1_0000_0002, 1500, b"12345", Some("lost"));
        packet(&mut file, 3, 40, &[], None);
        let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().expect("four bytes"));
        let (mut at, mut kinds) = (0, Vec::new());
        while at < file.len() {
            let length = word(at + 4) as usize;
            assert_eq!((length % 4, word(at + length - 4) as usize), (0, length));
            kinds.push((word(at), length));
            at += length;
        }
        assert_eq!(kinds, [(0x0a0d_0d0a, 52), (1, 56), (6, 52), (6, 32)]);
        let packet = 52 + 56;
        assert_eq!([3, 4, 5, 6].map(|index| word(packet + 4 * index)), [1, 2, 5, 1500]);
        assert_eq!(&file[packet + 28..packet + 36], b"12345\0\0\0");
    }
}

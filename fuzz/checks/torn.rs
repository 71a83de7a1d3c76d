//! Ways in which a stream can arrive. The input itself says where it is torn, so that seeds stay plain texts.

/// `stream` at once, byte by byte, and in parts of one to eight bytes, each as long as its first byte says.
pub(crate) fn ways(stream: &[u8]) -> [Vec<&[u8]>; 3] {
    let mut parts = Vec::new();
    let mut rest = stream;
    while let Some(first) = rest.first() {
        let (part, after) = rest.split_at(rest.len().min(usize::from(first % 8) + 1));
        parts.push(part);
        rest = after;
    }
    [vec![stream], stream.chunks(1).collect(), parts]
}

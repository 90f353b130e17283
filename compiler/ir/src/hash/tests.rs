//! The reference vectors.

use super::*;

/// Vectors of the reference implementation: key 00..0f, input 00, 01, 02, …
#[test]
fn agrees_with_the_reference() {
    let key = |from: u8| u64::from_le_bytes(std::array::from_fn(|i| from + i as u8));
    let hash = |n: u8| {
        let mut hasher = StableHasher::with_key(key(0), key(8));
        hasher.bytes(&(0..n).collect::<Vec<u8>>());
        hasher.finish().0.to_le_bytes().iter().map(|b| format!("{b:02x}")).collect::<String>()
    };
    assert_eq!(hash(0), "a3817f04ba25a8e66df67214c7550293");
    assert_eq!(hash(1), "da87c1d86b99af44347659119b22fc45");
}

//! The packets of an `in` stream, taken from the elements of an array.
//!
//! The rows of an array are its parts along the first axis. A stream that wraps begins the array again where it ends,
//! also inside a packet.
//!
//! # Note: Shuffled rows
//! A stream with `shuffle: seed` takes the rows of each pass over the array in an order of its own. In pass p, row r
//! has the key word0 + 2³²·word1 from the block of Philox 4x32-10 whose counter is (r, p), two words each, the low one
//! first, and whose key is the seed. Rows come in the order of their keys; rows of equal keys in that of their numbers.
//! So streams with the same seed and the same number of rows stay together.
//!
//! Invariant: packets depend on the array and on the declaration of the stream only.

use crate::arrays::Elements;
use girder_engine::StreamError;
use girder_ir::graph::Stream;
use girder_ir::types::ElemType;
use girder_kernels::random::philox;

/// The packets of one `in` stream.
#[derive(Debug)]
pub struct Packets {
    elements: Elements,
    /// The bytes of the array, and of a row.
    bytes: u64,
    row: u64,
    wrap: bool,
    /// The seed, and the order of the rows in this pass.
    shuffle: Option<(u64, Vec<u32>)>,
    /// The pass over the array, from 0, and the bytes that were read of it.
    pass: u64,
    at: u64,
}

/// The bytes of memory that each row takes while the order of a shuffled stream is made: the key and the number that
/// are sorted, with padding, and the number in the order.
const ORDER_BYTES: u64 = (size_of::<(u64, u32)>() + size_of::<u32>()) as u64;

/// Returns the bytes of an array and of a row of it, which is the array if its rank is 0; `None` if one of them has
/// more than 64 bits. A row of an array without rows may have them.
fn sizes(ty: ElemType, shape: &[u64]) -> Option<(u64, u64)> {
    let rest = shape.get(1..).unwrap_or_default();
    let row = rest.iter().try_fold(ty.bytes() as u64, |bytes, &length| bytes.checked_mul(length))?;
    Some((row.checked_mul(shape.first().copied().unwrap_or(1))?, row))
}

/// Returns the bytes of memory that the packets of an array for a stream need in addition to its elements: those of
/// the order of its rows, if the stream is shuffled.
pub fn order_bytes(ty: ElemType, shape: &[u64], stream: &Stream) -> u64 {
    let rows = sizes(ty, shape).and_then(|(bytes, row)| bytes.checked_div(row)).unwrap_or(0);
    if stream.shuffle.is_some() { rows.saturating_mul(ORDER_BYTES) } else { 0 }
}

/// Returns whether an array can feed a stream.
///
/// Its elements are whole packets, or the stream wraps. Its shape is one of these, where a packet's row is the packet
/// without its first axis:
/// - a list of elements, of which a stream that wraps needs at least one packet, and a shuffled one has rows of one
///   element;
/// - some of its trailing axes together have the elements of a packet, or of a packet's row.
///
/// Any shape feeds packets of one element. If the stream is shuffled, packets must also be whole rows of the array.
pub fn fits(ty: ElemType, shape: &[u64], stream: &Stream) -> bool {
    let Some((bytes, row)) = sizes(ty, shape) else { return false };
    let packet = stream.len() * ty.bytes() as u64;
    if ty != stream.ty || packet == 0 {
        return false;
    }
    let whole = bytes.is_multiple_of(packet);
    let feeds = match stream.shuffle {
        Some(_) => row > 0 && packet.is_multiple_of(row) && u32::try_from(bytes / row).is_ok(),
        None => true,
    };
    feeds && (whole || stream.wrap) && has_packets(shape, stream)
}

/// Returns whether packets, or rows of them, are parts of an array of a shape.
fn has_packets(shape: &[u64], stream: &Stream) -> bool {
    let (packet, row) = (stream.len(), stream.shape.iter().skip(1).product::<u64>());
    let mut trailing = shape.iter().rev().scan(1u64, |all, &n| {
        *all = all.saturating_mul(n);
        Some(*all)
    });
    // A list has no rows that could be shuffled, unless rows are elements.
    let in_rows = stream.shuffle.is_none() || row == 1;
    let list = shape.len() == 1 && in_rows && (!stream.wrap || shape[0] >= packet);
    packet == 1 || list || trailing.any(|n| n == packet || n == row)
}

/// Returns the shapes of arrays that feed a stream, for people.
pub fn accepted_shapes(stream: &Stream) -> String {
    let axes = |axes: &[u64]| axes.iter().map(|n| format!(", {n}")).collect::<String>();
    let packet = stream.len();
    if packet <= 1 {
        return "any shape".into();
    }
    let whole = if stream.wrap { "" } else { ", with as many rows as whole packets have" };
    let rows = match &stream.shape[1..] {
        [] => String::new(),
        row => format!(", [n{}]{whole}", axes(row)),
    };
    let list = match (stream.shuffle, stream.wrap) {
        (Some(_), _) if stream.shape.len() > 1 => String::new(),
        (_, true) => format!(", or a list of at least {packet} elements"),
        (_, false) => format!(", or a list of n * {packet} elements"),
    };
    format!("[n{}]{rows}{list}", axes(&stream.shape))
}

/// Returns the order of the rows of a pass. See the module's note.
pub fn order(seed: u64, pass: u64, rows: u32) -> Vec<u32> {
    let halves = |n: u64| [n as u32, (n >> 32) as u32];
    let ([a, b], key) = (halves(pass), halves(seed));
    let keyed = |row: u32| {
        let [low, high, ..] = philox([row, 0, a, b], key);
        (u64::from(high) << 32 | u64::from(low), row)
    };
    let mut keys: Vec<(u64, u32)> = (0..rows).map(keyed).collect();
    keys.sort_unstable();
    keys.into_iter().map(|(_, row)| row).collect()
}

impl Packets {
    /// Takes the elements of an array of a shape that [`fits`] a stream.
    pub fn new(elements: Elements, shape: &[u64], stream: &Stream) -> Packets {
        let (bytes, row) = sizes(stream.ty, shape).unwrap_or_default();
        let mut packets = Packets {
            elements,
            bytes,
            row,
            wrap: stream.wrap,
            shuffle: stream.shuffle.map(|seed| (seed, vec![])),
            pass: 0,
            at: 0,
        };
        packets.reorder();
        packets
    }

    /// Makes the order of the rows of this pass.
    fn reorder(&mut self) {
        let rows = self.rows();
        if let Some((seed, rows_of)) = &mut self.shuffle {
            // The memory of the last order is free before that of the next one is taken.
            *rows_of = vec![];
            *rows_of = order(*seed, self.pass, rows as u32);
        }
    }

    fn rows(&self) -> u64 {
        self.bytes.checked_div(self.row).unwrap_or(0)
    }

    /// Returns the number of rows that were read, in all passes.
    pub fn rows_read(&self) -> u64 {
        self.pass * self.rows() + self.at.checked_div(self.row).unwrap_or(0)
    }

    /// Reads one packet.
    pub fn read(&mut self, mut into: &mut [u8]) -> Result<(), StreamError> {
        while !into.is_empty() {
            if self.at == self.bytes {
                if !self.wrap || self.bytes == 0 {
                    return Err(StreamError::Ended);
                }
                (self.pass, self.at) = (self.pass + 1, 0);
                self.elements.seek(0).map_err(StreamError::Failed)?;
                self.reorder();
            }
            let mut most = self.bytes - self.at;
            if let Some((_, order)) = &self.shuffle {
                let row = u64::from(order[(self.at / self.row) as usize]);
                self.elements.seek(row * self.row).map_err(StreamError::Failed)?;
                most = self.row;
            }
            let count = into.len().min(usize::try_from(most).unwrap_or(usize::MAX));
            let (now, later) = into.split_at_mut(count);
            self.elements.read(now).map_err(StreamError::Failed)?;
            self.at += count as u64;
            into = later;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use girder_source::OriginId;

    fn stream(shape: &[u64], wrap: bool, shuffle: Option<u64>) -> Stream {
        let (name, shape, origin) = ("s".into(), shape.into(), OriginId::from_u32(0));
        Stream {
            name,
            input: true,
            ty: ElemType::U8,
            shape,
            wrap,
            shuffle,
            ahead: 0,
            same: false,
            rows: None,
            offloaded: false,
            origin,
        }
    }

    fn read(packets: &mut Packets, count: usize) -> Result<Vec<u8>, StreamError> {
        let mut packet = vec![0; count];
        packets.read(&mut packet).map(|()| packet)
    }

    /// Rows of two elements, the second of which is ten more than the first.
    fn rows(count: u8) -> Elements {
        Elements::Memory((0..count).flat_map(|row| [row, row + 10]).collect(), 0)
    }

    #[test]
    fn each_pass_has_an_order_of_its_own() {
        let stream = stream(&[2, 2], true, Some(7));
        assert!(fits(ElemType::U8, &[5, 2], &stream));
        let mut packets = Packets::new(rows(5), &[5, 2], &stream);
        let mut found = vec![];
        for _ in 0..5 {
            found.extend(read(&mut packets, 4).unwrap());
        }
        assert_eq!(packets.rows_read(), 10);
        let firsts: Vec<u32> = found.chunks(2).map(|row| u32::from(row[0])).collect();
        assert!(found.chunks(2).all(|row| row[1] == row[0] + 10));
        // Computed by NumPy from the definition.
        assert_eq!(firsts, [2, 3, 0, 1, 4, 0, 3, 2, 4, 1]);
    }

    #[test]
    fn an_order_is_a_permutation_that_depends_on_seed_and_pass() {
        let first = order(1, 0, 1000);
        let mut sorted = first.clone();
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(0..1000));
        assert!(first != order(2, 0, 1000) && first != order(1, 1, 1000) && first != order(1 << 32, 0, 1000));
        // Half of the neighbours ascend.
        let ascents = first.windows(2).filter(|pair| pair[0] < pair[1]).count();
        assert!((450..550).contains(&ascents), "{ascents} ascents");
    }

    #[test]
    fn a_stream_ends_or_wraps() {
        let mut ends = Packets::new(rows(2), &[2, 2], &stream(&[2], false, None));
        assert_eq!(read(&mut ends, 2), Ok(vec![0, 10]));
        assert_eq!(read(&mut ends, 2), Ok(vec![1, 11]));
        assert_eq!(read(&mut ends, 2), Err(StreamError::Ended));
        let mut wraps = Packets::new(rows(2), &[2, 2], &stream(&[3], true, None));
        assert_eq!(read(&mut wraps, 3), Ok(vec![0, 10, 1]));
        assert_eq!(read(&mut wraps, 3), Ok(vec![11, 0, 10]));
    }

    #[test]
    fn packets_are_whole_or_made_of_rows() {
        let check = |shape: &[u64], packet: &[u64], wrap, shuffle| {
            let stream = stream(packet, wrap, shuffle);
            fits(ElemType::U8, shape, &stream)
        };
        assert!(check(&[4, 6], &[6], false, None));
        assert!(!check(&[4, 6], &[3], false, None));
        assert!(!check(&[4, 6], &[5], true, None));
        assert!(!check(&[4, 6], &[18], false, None));
        assert!(check(&[4, 6], &[3, 6], true, None));
        assert!(check(&[4, 6], &[3, 6], true, Some(1)));
        assert!(!check(&[4, 6], &[18], true, Some(1)));
        assert!(!check(&[4, 6], &[3], true, Some(1)));
        assert!(!check(&[4, 6], &[3, 6], false, Some(1)));
        assert!(!check(&[4, 6], &[0], true, None));
        // The rows of a list are its elements.
        assert!(!check(&[24], &[3, 6], true, Some(1)) && check(&[24], &[3, 6], true, None));
        assert!(check(&[24], &[6], true, Some(1)) && check(&[24], &[6, 1], true, Some(1)));
        // A file without rows feeds nothing, and says so when it is read.
        assert!(check(&[0, 6], &[6], true, Some(1)));
        // Neither a row nor the array has a size.
        assert!(!check(&[0, 1 << 40, 1 << 40], &[6], true, None));
        assert!(!check(&[1 << 40, 1 << 40, 0], &[6], true, Some(1)));
        assert!(!check(&[1 << 40, 1 << 40], &[6], true, Some(1)));
    }

    /// A shape is never taken for another one, but for axes that packets split or join.
    #[test]
    fn shapes_are_those_of_packets_or_of_their_rows() {
        let check = |shape: &[u64], packet: &[u64], wrap| fits(ElemType::U8, shape, &stream(packet, wrap, None));
        for packet in [&[40, 28, 28, 1][..], &[40, 784], &[784], &[28, 28]] {
            for shape in [&[120, 28, 28][..], &[120, 784], &[120, 784, 1], &[120 * 784]] {
                assert!(check(shape, packet, true) && check(shape, packet, false), "{shape:?} {packet:?}");
            }
        }
        assert!(check(&[50, 28, 28], &[40, 784], true) && !check(&[50, 28, 28], &[40, 784], false));
        for (shape, wraps, ends) in [
            (&[7][..], false, false),
            (&[], false, false),
            (&[80, 2], false, false),
            (&[32], true, true),
            (&[33], true, false),
            (&[4], true, false),
            (&[9, 4], true, false),
            (&[8, 4], true, true),
            (&[3, 4, 4], true, true),
            (&[3, 16], true, true),
        ] {
            assert_eq!((check(shape, &[4, 4], true), check(shape, &[4, 4], false)), (wraps, ends), "{shape:?}");
        }
        assert!(check(&[80, 2], &[], false) && check(&[], &[1], true) && check(&[5, 1], &[3], true));
        let text = |packet: &[u64], wrap, shuffle| accepted_shapes(&stream(packet, wrap, shuffle));
        assert_eq!(text(&[4, 4], true, None), "[n, 4, 4], [n, 4], or a list of at least 16 elements");
        assert_eq!(text(&[4, 4], true, Some(1)), "[n, 4, 4], [n, 4]");
        assert_eq!(text(&[10], false, None), "[n, 10], or a list of n * 10 elements");
        assert_eq!(text(&[], false, None), "any shape");
    }

    #[test]
    fn only_an_order_needs_memory() {
        let bytes = |shape: &[u64], shuffle| order_bytes(ElemType::U8, shape, &stream(&[2], true, shuffle));
        assert_eq!(bytes(&[1000, 2], Some(1)), 20_000);
        assert_eq!(bytes(&[1000, 2], None), 0);
        assert_eq!(bytes(&[0, 2], Some(1)), 0);
        assert_eq!(bytes(&[1000, 0], Some(1)), 0);
    }
}

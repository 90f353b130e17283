//! The text of a tensor, as `print` and `--get` show it, and of a static array.

use crate::types::{ElemType, Scalar};

/// A tensor with more elements than this is summarised.
const WHOLE: u64 = 1000;
/// The number of elements that a summary shows at each end of an axis.
const EDGE: u64 = 3;

/// Returns a tensor as text: nested brackets, floats in the fewest digits that read back.
pub fn show(ty: ElemType, shape: &[u64], bytes: &[u8]) -> String {
    // A tensor without elements may still have any number of empty rows.
    let brief = shape.iter().fold(1u64, |n, &d| n.saturating_mul(d.max(1))) > WHOLE;
    let mut out = String::new();
    show_axis(ty, shape, bytes, brief, &mut out);
    out
}

fn show_axis(ty: ElemType, shape: &[u64], bytes: &[u8], brief: bool, out: &mut String) {
    let Some((&n, rest)) = shape.split_first() else {
        out.push_str(&show_scalar(Scalar::from_le_bytes(ty, bytes)));
        return;
    };
    let size = rest.iter().product::<u64>() as usize * ty.bytes() as usize;
    out.push('[');
    let mut k = 0;
    while k < n {
        if k > 0 {
            out.push_str(", ");
        }
        if brief && k == EDGE && n > 2 * EDGE {
            out.push_str("…, ");
            k = n - EDGE;
        }
        show_axis(ty, rest, &bytes[k as usize * size..][..size], brief, out);
        k += 1;
    }
    out.push(']');
}

fn show_scalar(s: Scalar) -> String {
    match s.ty {
        ElemType::F32 => format!("{:?}", f32::from_bits(s.bits as u32)),
        ElemType::F16 | ElemType::F64 => format!("{:?}", s.as_float().unwrap_or_default()),
        _ => s.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tensors_are_shown_row_by_row_and_large_ones_by_their_ends() {
        let bytes: Vec<u8> = [1.0f32, 2.5, -0.0, f32::NAN].iter().flat_map(|x| x.to_le_bytes()).collect();
        assert_eq!(show(ElemType::F32, &[2, 2], &bytes), "[[1.0, 2.5], [-0.0, NaN]]");
        assert_eq!(show(ElemType::U8, &[], &[7]), "7");
        assert_eq!(show(ElemType::U8, &[2000], &[1; 2000]), "[1, 1, 1, …, 1, 1, 1]");
        assert_eq!(show(ElemType::U8, &[1 << 60, 0], &[]), "[[], [], [], …, [], [], []]");
    }
}

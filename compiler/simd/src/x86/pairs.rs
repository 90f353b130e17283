//! Descriptive names for instructions, in pairs for lanes of two widths.
//!
//! Invariant: the second of a pair is for the wider lanes, or for unsigned lanes where both have one width.

use super::table::Code;
use crate::ir::{Lane, Op, Rounding};

/// An instruction on 32-bit lanes and on 64-bit lanes.
pub(super) type Pair = [Code; 2];

pub(super) const ADD: Pair = [Code::Vaddps, Code::Vaddpd];
pub(super) const SUB: Pair = [Code::Vsubps, Code::Vsubpd];
pub(super) const MUL: Pair = [Code::Vmulps, Code::Vmulpd];
pub(super) const DIV: Pair = [Code::Vdivps, Code::Vdivpd];
pub(super) const MIN: Pair = [Code::Vminps, Code::Vminpd];
pub(super) const MAX: Pair = [Code::Vmaxps, Code::Vmaxpd];
pub(super) const SQRT: Pair = [Code::Vsqrtps, Code::Vsqrtpd];
pub(super) const RANGE: Pair = [Code::Vrangeps, Code::Vrangepd];
pub(super) const ROUND: Pair = [Code::Vrndscaleps, Code::Vrndscalepd];
/// The result, in the first operand, is `first * third + second`, `second * first + third`, `second * third + first`.
pub(super) const FMA_132: Pair = [Code::Vfmadd132ps, Code::Vfmadd132pd];
pub(super) const FMA_213: Pair = [Code::Vfmadd213ps, Code::Vfmadd213pd];
pub(super) const FMA_231: Pair = [Code::Vfmadd231ps, Code::Vfmadd231pd];
/// The same with the product negated.
pub(super) const NEGATED_FMA_132: Pair = [Code::Vfnmadd132ps, Code::Vfnmadd132pd];
pub(super) const NEGATED_FMA_213: Pair = [Code::Vfnmadd213ps, Code::Vfnmadd213pd];
pub(super) const NEGATED_FMA_231: Pair = [Code::Vfnmadd231ps, Code::Vfnmadd231pd];
pub(super) const COMPARE: Pair = [Code::Vcmpps, Code::Vcmppd];
pub(super) const BLEND: Pair = [Code::Vblendmps, Code::Vblendmpd];
pub(super) const IADD: Pair = [Code::Vpaddd, Code::Vpaddq];
pub(super) const ISUB: Pair = [Code::Vpsubd, Code::Vpsubq];
pub(super) const IMUL: Pair = [Code::Vpmulld, Code::Vpmullq];
pub(super) const SMIN: Pair = [Code::Vpminsd, Code::Vpminsq];
pub(super) const SMAX: Pair = [Code::Vpmaxsd, Code::Vpmaxsq];
pub(super) const UMIN: Pair = [Code::Vpminud, Code::Vpminuq];
pub(super) const UMAX: Pair = [Code::Vpmaxud, Code::Vpmaxuq];
pub(super) const IABS: Pair = [Code::Vpabsd, Code::Vpabsq];
pub(super) const ZEROS: Pair = [Code::Vplzcntd, Code::Vplzcntq];
pub(super) const ONES: Pair = [Code::Vpopcntd, Code::Vpopcntq];
pub(super) const AND: Pair = [Code::Vpandd, Code::Vpandq];
pub(super) const OR: Pair = [Code::Vpord, Code::Vporq];
pub(super) const XOR: Pair = [Code::Vpxord, Code::Vpxorq];
pub(super) const SHIFT_LEFT: Pair = [Code::Vpslld, Code::Vpsllq];
pub(super) const SHIFT_RIGHT: Pair = [Code::Vpsrld, Code::Vpsrlq];
pub(super) const SHIFT_RIGHT_SIGNED: Pair = [Code::Vpsrad, Code::Vpsraq];
pub(super) const ICOMPARE: Pair = [Code::Vpcmpd, Code::Vpcmpq];
pub(super) const UCOMPARE: Pair = [Code::Vpcmpud, Code::Vpcmpuq];
/// Whether two vectors have a common bit in a lane; whether they have none.
pub(super) const TEST: Pair = [Code::Vptestmd, Code::Vptestmq];
pub(super) const TEST_NONE: Pair = [Code::Vptestnmd, Code::Vptestnmq];
pub(super) const BROADCAST: Pair = [Code::Vbroadcastss, Code::Vbroadcastsd];
pub(super) const GATHER: Pair = [Code::Vgatherdps, Code::Vgatherdpd];
pub(super) const SCATTER: Pair = [Code::Vscatterdps, Code::Vscatterdpd];
pub(super) const LOAD: Pair = [Code::Vmovups, Code::Vmovupd];
pub(super) const STORE: Pair = [Code::VmovupsStore, Code::VmovupdStore];
pub(super) const PERMUTE: Pair = [Code::Vpermps, Code::Vpermpd];
pub(super) const PERMUTE_TWO: Pair = [Code::Vpermt2ps, Code::Vpermt2pd];
/// Conversions from and to 32-bit integers: signed, unsigned.
pub(super) const F32_OF_INT: Pair = [Code::Vcvtdq2ps, Code::Vcvtudq2ps];
pub(super) const INT_OF_F32: Pair = [Code::Vcvttps2dq, Code::Vcvttps2udq];
/// Conversions of eight 32-bit lanes to eight 64-bit lanes.
pub(super) const F64_OF_INT: Pair = [Code::Vcvtdq2pd, Code::Vcvtudq2pd];
pub(super) const F64_OF_F32: Code = Code::Vcvtps2pd;
pub(super) const LONG_OF_INT: Pair = [Code::Vpmovsxdq, Code::Vpmovzxdq];
/// Conversions of eight 64-bit lanes to eight 32-bit lanes.
pub(super) const INT_OF_F64: Pair = [Code::Vcvttpd2dq, Code::Vcvttpd2udq];
pub(super) const F32_OF_F64: Code = Code::Vcvtpd2ps;
pub(super) const F32_OF_LONG: Pair = [Code::Vcvtqq2ps, Code::Vcvtuqq2ps];
pub(super) const INT_OF_LONG: Code = Code::Vpmovqd;
/// Conversions of 64-bit lanes: signed, unsigned.
pub(super) const F64_OF_LONG: Pair = [Code::Vcvtqq2pd, Code::Vcvtuqq2pd];
pub(super) const LONG_OF_F64: Pair = [Code::Vcvttpd2qq, Code::Vcvttpd2uqq];
/// Extraction of the upper eight of sixteen 32-bit lanes, and insertion of two halves into a whole.
pub(super) const UPPER: Code = Code::Vextractf64x4;
pub(super) const JOIN: Code = Code::Vinsertf64x4;
/// Loads and stores of narrow elements.
pub(super) const LOAD_U8: Code = Code::Vpmovzxbd;
pub(super) const LOAD_I8: Code = Code::Vpmovsxbd;
pub(super) const LOAD_U16: Code = Code::Vpmovzxwd;
pub(super) const LOAD_I16: Code = Code::Vpmovsxwd;
pub(super) const STORE_8: Code = Code::Vpmovdb;
pub(super) const STORE_16: Code = Code::Vpmovdw;
/// A load of bytes, and a shuffle of bytes within each 128 bits.
pub(super) const LOAD_BYTES: Code = Code::Vmovdqu8;
pub(super) const SHUFFLE_BYTES: Code = Code::Vpshufb;
/// Register moves; the lane width matters under a mask.
pub(super) const COPY: Pair = [Code::Vmovaps, Code::Vmovapd];
/// Instructions on 8-bit and on 16-bit lanes.
pub(super) const NARROW_ADD: Pair = [Code::Vpaddb, Code::Vpaddw];
pub(super) const NARROW_SUB: Pair = [Code::Vpsubb, Code::Vpsubw];
pub(super) const NARROW_SMIN: Pair = [Code::Vpminsb, Code::Vpminsw];
pub(super) const NARROW_SMAX: Pair = [Code::Vpmaxsb, Code::Vpmaxsw];
pub(super) const NARROW_UMIN: Pair = [Code::Vpminub, Code::Vpminuw];
pub(super) const NARROW_UMAX: Pair = [Code::Vpmaxub, Code::Vpmaxuw];
pub(super) const NARROW_ABS: Pair = [Code::Vpabsb, Code::Vpabsw];
/// `(a + b + 1) >> 1` without overflow.
pub(super) const NARROW_AVERAGE: Pair = [Code::Vpavgb, Code::Vpavgw];
pub(super) const NARROW_COMPARE: Pair = [Code::Vpcmpb, Code::Vpcmpw];
pub(super) const NARROW_UCOMPARE: Pair = [Code::Vpcmpub, Code::Vpcmpuw];
pub(super) const NARROW_BLEND: Pair = [Code::Vpblendmb, Code::Vpblendmw];
/// Instructions on 16-bit lanes.
pub(super) const WORD_MUL: Code = Code::Vpmullw;
pub(super) const WORD_SHIFT: Code = Code::Vpsllw;
pub(super) const WORD_SHIFT_RIGHT: Code = Code::Vpsrlw;
pub(super) const WORD_SHIFT_RIGHT_SIGNED: Code = Code::Vpsraw;
/// Sums of the products of neighbouring lanes: signed 16-bit lanes, and unsigned with signed 8-bit lanes.
pub(super) const ADD_PRODUCTS: Code = Code::Vpmaddwd;
pub(super) const ADD_BYTE_PRODUCTS: Code = Code::Vpmaddubsw;
/// The sums of the differences of eight unsigned bytes, in 64-bit lanes.
pub(super) const SUM_DIFFERENCES: Code = Code::Vpsadbw;
pub(super) const MASK_AND: Code = Code::Kandw;
/// `!a & b`
pub(super) const MASK_AND_NOT: Code = Code::Kandnw;
pub(super) const MASK_OR: Code = Code::Korw;
pub(super) const MASK_EQUAL: Code = Code::Kxnorw;
pub(super) const MASK_XOR: Code = Code::Kxorw;
/// Joins the low eight bits of two masks; those of the first operand become the upper ones.
pub(super) const MASK_JOIN: Code = Code::Kunpckbw;
pub(super) const MASK_NOT: Code = Code::Knotw;
pub(super) const MASK_SHIFT_RIGHT: Code = Code::Kshiftrw;
pub(super) const MASK_LOAD: Code = Code::KmovwLoad;
pub(super) const MASK_OF_GENERAL: Code = Code::KmovwGeneral;
/// Instructions on masks of 64 lanes.
pub(super) const LONG_MASK_AND: Code = Code::Kandq;
pub(super) const LONG_MASK_OR: Code = Code::Korq;
pub(super) const LONG_MASK_NOT: Code = Code::Knotq;
pub(super) const LONG_MASK_STORE: Code = Code::KmovqStore;
pub(super) const LONG_MASK_LOAD: Code = Code::KmovqLoad;
pub(super) const LONG_MASK_OF_GENERAL: Code = Code::KmovqGeneral;
/// Instructions of AVX2, whose masks are vectors.
pub(super) const BLEND_BY: Pair = [Code::Vblendvps, Code::Vblendvpd];
pub(super) const LOAD_SOME: Pair = [Code::Vmaskmovps, Code::Vmaskmovpd];
pub(super) const STORE_SOME: Pair = [Code::VmaskmovpsStore, Code::VmaskmovpdStore];
pub(super) const EQUAL: Pair = [Code::Vpcmpeqd, Code::Vpcmpeqq];
pub(super) const GREATER: Pair = [Code::Vpcmpgtd, Code::Vpcmpgtq];
pub(super) const AND_NOT: Code = Code::Vpandn;
/// Products of the lower halves of 64-bit lanes: unsigned, signed.
pub(super) const MULTIPLY_LOW: Code = Code::Vpmuludq;
pub(super) const MULTIPLY_LOW_SIGNED: Code = Code::Vpmuldq;
/// Extraction of the upper 128 bits of 256, and insertion of two 128-bit vectors into one of 256 bits.
pub(super) const UPPER_128: Code = Code::Vextractf128;
pub(super) const JOIN_128: Code = Code::Vinsertf128;
pub(super) const JOIN_ANY_128: Code = Code::Vperm2f128;
/// A blend of two vectors; the immediate has a bit for each lane of the second one.
pub(super) const CHOOSE: Pair = [Code::Vblendps, Code::Vblendpd];
/// Interleaves the lower, or the upper, lanes of two vectors within each 128 bits.
pub(super) const UNPACK_LOWER: Pair = [Code::Vunpcklps, Code::Vunpcklpd];
pub(super) const UNPACK_UPPER: Pair = [Code::Vunpckhps, Code::Vunpckhpd];
pub(super) const SHUFFLE: Code = Code::Vshufps;
pub(super) const QUARTERS: Code = Code::Vpermq;
/// Packs two vectors of 128 bits to unsigned elements of half the size, with saturation.
pub(super) const PACK_16: Code = Code::Vpackusdw;
pub(super) const PACK_8: Code = Code::Vpackuswb;
pub(super) const STORE_64: Code = Code::Vmovq;
/// Moves the sign bits of lanes to a general register.
pub(super) const SIGNS: Pair = [Code::Vmovmskps, Code::Vmovmskpd];
/// Moves of an element of 8, 16, 32 or 64 bits, by its number, from and to memory.
pub(super) const INSERT: Pair = [Code::Vpinsrb, Code::Vpinsrw];
pub(super) const EXTRACT: [Code; 4] = [Code::Vpextrb, Code::Vpextrw, Code::Vpextrd, Code::Vpextrq];
pub(super) const STORE_128: Code = Code::VmovupsXmmStore;
/// Comparisons of 8-bit and of 16-bit lanes.
pub(super) const NARROW_EQUAL: Pair = [Code::Vpcmpeqb, Code::Vpcmpeqw];
pub(super) const NARROW_GREATER: Pair = [Code::Vpcmpgtb, Code::Vpcmpgtw];
pub(super) const BLEND_BYTES_BY: Code = Code::Vpblendvb;
pub(super) const NARROW_BROADCAST: Pair = [Code::Vpbroadcastb, Code::Vpbroadcastw];

/// Returns the instruction of a pair for a lane of 32 or 64 bits.
pub(super) fn pick(pair: Pair, lane: Lane) -> Code {
    pair[usize::from(lane.is_long())]
}

/// Returns the instruction of a pair for a lane of 8 or 16 bits.
pub(super) fn narrow(pair: Pair, lane: Lane) -> Code {
    pair[usize::from(lane.bits() == 16)]
}

/// Returns the instruction that loads contiguous elements.
pub(super) fn load_code(lane: Lane) -> Code {
    match lane {
        Lane::U8 => LOAD_U8,
        Lane::I8 => LOAD_I8,
        Lane::U16 => LOAD_U16,
        Lane::I16 => LOAD_I16,
        _ => pick(LOAD, lane),
    }
}

/// Returns the instruction of an operation on two vectors of narrow lanes.
pub(super) fn narrow_code(op: Op, lane: Lane) -> Code {
    let signed = lane.is_signed();
    match op {
        Op::Add => narrow(NARROW_ADD, lane),
        Op::Sub => narrow(NARROW_SUB, lane),
        Op::Mul if lane.bits() == 16 => WORD_MUL,
        Op::Min => narrow(if signed { NARROW_SMIN } else { NARROW_UMIN }, lane),
        Op::Max => narrow(if signed { NARROW_SMAX } else { NARROW_UMAX }, lane),
        Op::And => AND[0],
        Op::Or => OR[0],
        Op::Xor => XOR[0],
        Op::Average => narrow(NARROW_AVERAGE, lane),
        op => unreachable!("narrow kernels have no {op:?} of {}", lane.name()),
    }
}

/// Returns the immediate of a rounding that raises no inexact exception.
pub(super) fn rounding(how: Rounding) -> u8 {
    8 | match how {
        Rounding::Nearest => 0,
        Rounding::Floor => 1,
        Rounding::Ceil => 2,
        Rounding::Trunc => 3,
    }
}

/// Immediates of comparisons.
pub(super) mod order {
    use crate::ir::Cond;

    pub const UNORDERED: u8 = 0x03;
    pub const NE: u8 = 0x04;
    pub const LT: u8 = 0x11;
    pub const ORDERED: u8 = 0x07;
    pub const GE: u8 = 0x1d;

    pub fn of_floats(cond: Cond) -> u8 {
        match cond {
            Cond::Eq => 0x00,
            Cond::Ne => NE,
            Cond::Lt => LT,
            Cond::Le => 0x12,
            Cond::Gt => 0x1e,
            Cond::Ge => GE,
        }
    }

    /// Returns the immediate of a comparison of integers, whose numbering differs from that of floats.
    pub fn of_integers(cond: Cond) -> u8 {
        match cond {
            Cond::Eq => 0,
            Cond::Lt => 1,
            Cond::Le => 2,
            Cond::Ne => 4,
            Cond::Ge => 5,
            Cond::Gt => 6,
        }
    }
}

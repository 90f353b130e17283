//! The instructions of strips.
//!
//! Invariant: names and encodings are those of Intel's manual, volume 2.

use super::encode::Code;

const fn code(name: &'static str, map: u8, prefix: u8, w: u8, opcode: u8) -> Code {
    Code { name, map, prefix, w, opcode, short: false }
}

/// The same instruction on 32-bit and 64-bit lanes.
pub(crate) type Pair = [Code; 2];

macro_rules! pair {
    ($($name:ident = $narrow:literal $wide:literal, $map:literal, $p:literal $q:literal, $a:literal $b:literal;)*) => {
        $(pub(crate) const $name: Pair = [code($narrow, $map, $p, 0, $a), code($wide, $map, $q, 1, $b)];)*
    };
}

pair! {
    ADD = "vaddps" "vaddpd", 1, 0 1, 0x58 0x58;
    SUB = "vsubps" "vsubpd", 1, 0 1, 0x5c 0x5c;
    MUL = "vmulps" "vmulpd", 1, 0 1, 0x59 0x59;
    DIV = "vdivps" "vdivpd", 1, 0 1, 0x5e 0x5e;
    MIN = "vminps" "vminpd", 1, 0 1, 0x5d 0x5d;
    MAX = "vmaxps" "vmaxpd", 1, 0 1, 0x5f 0x5f;
    SQRT = "vsqrtps" "vsqrtpd", 1, 0 1, 0x51 0x51;
    RANGE = "vrangeps" "vrangepd", 3, 1 1, 0x50 0x50;
    ROUND = "vrndscaleps" "vrndscalepd", 3, 1 1, 0x08 0x09;
    FMA_213 = "vfmadd213ps" "vfmadd213pd", 2, 1 1, 0xa8 0xa8;
    FMA_231 = "vfmadd231ps" "vfmadd231pd", 2, 1 1, 0xb8 0xb8;
    COMPARE = "vcmpps" "vcmppd", 1, 0 1, 0xc2 0xc2;
    BLEND = "vblendmps" "vblendmpd", 2, 1 1, 0x65 0x65;
    IADD = "vpaddd" "vpaddq", 1, 1 1, 0xfe 0xd4;
    ISUB = "vpsubd" "vpsubq", 1, 1 1, 0xfa 0xfb;
    IMUL = "vpmulld" "vpmullq", 2, 1 1, 0x40 0x40;
    SMIN = "vpminsd" "vpminsq", 2, 1 1, 0x39 0x39;
    SMAX = "vpmaxsd" "vpmaxsq", 2, 1 1, 0x3d 0x3d;
    UMIN = "vpminud" "vpminuq", 2, 1 1, 0x3b 0x3b;
    UMAX = "vpmaxud" "vpmaxuq", 2, 1 1, 0x3f 0x3f;
    IABS = "vpabsd" "vpabsq", 2, 1 1, 0x1e 0x1f;
    ZEROS = "vplzcntd" "vplzcntq", 2, 1 1, 0x44 0x44;
    ONES = "vpopcntd" "vpopcntq", 2, 1 1, 0x55 0x55;
    AND = "vpandd" "vpandq", 1, 1 1, 0xdb 0xdb;
    OR = "vpord" "vporq", 1, 1 1, 0xeb 0xeb;
    XOR = "vpxord" "vpxorq", 1, 1 1, 0xef 0xef;
    SHIFT_LEFT = "vpslld" "vpsllq", 1, 1 1, 0x72 0x73;
    SHIFT_RIGHT = "vpsrld" "vpsrlq", 1, 1 1, 0x72 0x73;
    SHIFT_RIGHT_SIGNED = "vpsrad" "vpsraq", 1, 1 1, 0x72 0x72;
    ICOMPARE = "vpcmpd" "vpcmpq", 3, 1 1, 0x1f 0x1f;
    UCOMPARE = "vpcmpud" "vpcmpuq", 3, 1 1, 0x1e 0x1e;
    TEST = "vptestmd" "vptestmq", 2, 1 1, 0x27 0x27;
    BROADCAST = "vbroadcastss" "vbroadcastsd", 2, 1 1, 0x18 0x19;
    GATHER = "vgatherdps" "vgatherdpd", 2, 1 1, 0x92 0x92;
    SCATTER = "vscatterdps" "vscatterdpd", 2, 1 1, 0xa2 0xa2;
    LOAD = "vmovups" "vmovupd", 1, 0 1, 0x10 0x10;
    STORE = "vmovups" "vmovupd", 1, 0 1, 0x11 0x11;
    PERMUTE = "vpermps" "vpermpd", 2, 1 1, 0x16 0x16;
    PERMUTE_TWO = "vpermt2ps" "vpermt2pd", 2, 1 1, 0x7f 0x7f;
}

/// From and to 32-bit integers: signed, unsigned.
pub(crate) const F32_OF_INT: Pair = [code("vcvtdq2ps", 1, 0, 0, 0x5b), code("vcvtudq2ps", 1, 3, 0, 0x7a)];
pub(crate) const INT_OF_F32: Pair = [code("vcvttps2dq", 1, 2, 0, 0x5b), code("vcvttps2udq", 1, 0, 0, 0x78)];
/// Eight lanes of 32 bits to eight of 64.
pub(crate) const F64_OF_INT: Pair = [code("vcvtdq2pd", 1, 2, 0, 0xe6), code("vcvtudq2pd", 1, 2, 0, 0x7a)];
pub(crate) const F64_OF_F32: Code = code("vcvtps2pd", 1, 0, 0, 0x5a);
pub(crate) const LONG_OF_INT: Pair = [code("vpmovsxdq", 2, 1, 0, 0x25), code("vpmovzxdq", 2, 1, 0, 0x35)];
/// Eight lanes of 64 bits to eight of 32.
pub(crate) const INT_OF_F64: Pair = [code("vcvttpd2dq", 1, 1, 1, 0xe6), code("vcvttpd2udq", 1, 0, 1, 0x78)];
pub(crate) const F32_OF_F64: Code = code("vcvtpd2ps", 1, 1, 1, 0x5a);
pub(crate) const F32_OF_LONG: Pair = [code("vcvtqq2ps", 1, 0, 1, 0x5b), code("vcvtuqq2ps", 1, 3, 1, 0x7a)];
pub(crate) const INT_OF_LONG: Code = code("vpmovqd", 2, 2, 0, 0x35);
/// 64-bit lanes: signed, unsigned.
pub(crate) const F64_OF_LONG: Pair = [code("vcvtqq2pd", 1, 2, 1, 0xe6), code("vcvtuqq2pd", 1, 2, 1, 0x7a)];
pub(crate) const LONG_OF_F64: Pair = [code("vcvttpd2qq", 1, 1, 1, 0x7a), code("vcvttpd2uqq", 1, 1, 1, 0x78)];
/// The upper eight of sixteen 32-bit lanes, and two halves as a whole.
pub(crate) const UPPER: Code = code("vextractf64x4", 3, 1, 1, 0x1b);
pub(crate) const JOIN: Code = code("vinsertf64x4", 3, 1, 1, 0x1a);
/// Memory of narrow elements.
pub(crate) const LOAD_U8: Code = code("vpmovzxbd", 2, 1, 0, 0x31);
pub(crate) const LOAD_I8: Code = code("vpmovsxbd", 2, 1, 0, 0x21);
pub(crate) const LOAD_U16: Code = code("vpmovzxwd", 2, 1, 0, 0x33);
pub(crate) const LOAD_I16: Code = code("vpmovsxwd", 2, 1, 0, 0x23);
pub(crate) const STORE_8: Code = code("vpmovdb", 2, 2, 0, 0x31);
pub(crate) const STORE_16: Code = code("vpmovdw", 2, 2, 0, 0x33);
/// Bytes as they are, and those of each 128 bits in another order.
pub(crate) const LOAD_BYTES: Code = code("vmovdqu8", 1, 3, 0, 0x6f);
pub(crate) const SHUFFLE_BYTES: Code = code("vpshufb", 2, 1, 0, 0x00);
/// Which of the two matters under a mask.
pub(crate) const COPY: Pair = [code("vmovaps", 1, 0, 0, 0x28), code("vmovapd", 1, 1, 1, 0x28)];

/// The same instruction on lanes of 8 and of 16 bits.
pub(crate) const NARROW_ADD: Pair = [code("vpaddb", 1, 1, 0, 0xfc), code("vpaddw", 1, 1, 0, 0xfd)];
pub(crate) const NARROW_SUB: Pair = [code("vpsubb", 1, 1, 0, 0xf8), code("vpsubw", 1, 1, 0, 0xf9)];
pub(crate) const NARROW_SMIN: Pair = [code("vpminsb", 2, 1, 0, 0x38), code("vpminsw", 1, 1, 0, 0xea)];
pub(crate) const NARROW_SMAX: Pair = [code("vpmaxsb", 2, 1, 0, 0x3c), code("vpmaxsw", 1, 1, 0, 0xee)];
pub(crate) const NARROW_UMIN: Pair = [code("vpminub", 1, 1, 0, 0xda), code("vpminuw", 2, 1, 0, 0x3a)];
pub(crate) const NARROW_UMAX: Pair = [code("vpmaxub", 1, 1, 0, 0xde), code("vpmaxuw", 2, 1, 0, 0x3e)];
pub(crate) const NARROW_ABS: Pair = [code("vpabsb", 2, 1, 0, 0x1c), code("vpabsw", 2, 1, 0, 0x1d)];
/// `(a + b + 1) >> 1`, as if there were room for the sum.
pub(crate) const NARROW_AVERAGE: Pair = [code("vpavgb", 1, 1, 0, 0xe0), code("vpavgw", 1, 1, 0, 0xe3)];
pub(crate) const NARROW_COMPARE: Pair = [code("vpcmpb", 3, 1, 0, 0x3f), code("vpcmpw", 3, 1, 1, 0x3f)];
pub(crate) const NARROW_UCOMPARE: Pair = [code("vpcmpub", 3, 1, 0, 0x3e), code("vpcmpuw", 3, 1, 1, 0x3e)];
pub(crate) const NARROW_BLEND: Pair = [code("vpblendmb", 2, 1, 0, 0x66), code("vpblendmw", 2, 1, 1, 0x66)];
/// Lanes of 16 bits; the digits of shifts are those of [`SHIFT_LEFT`] and its kin.
pub(crate) const WORD_MUL: Code = code("vpmullw", 1, 1, 0, 0xd5);
pub(crate) const WORD_SHIFT: Code = code("vpsllw", 1, 1, 0, 0x71);
pub(crate) const WORD_SHIFT_RIGHT: Code = code("vpsrlw", 1, 1, 0, 0x71);
pub(crate) const WORD_SHIFT_RIGHT_SIGNED: Code = code("vpsraw", 1, 1, 0, 0x71);
/// Products of signed lanes of 16 bits, and of unsigned with signed ones of 8, those of neighbours added.
pub(crate) const ADD_PRODUCTS: Code = code("vpmaddwd", 1, 1, 0, 0xf5);
pub(crate) const ADD_BYTE_PRODUCTS: Code = code("vpmaddubsw", 2, 1, 0, 0x04);

pub(crate) const MASK_AND: Code = code("kandw", 1, 0, 0, 0x41);
/// `!a & b`
pub(crate) const MASK_AND_NOT: Code = code("kandnw", 1, 0, 0, 0x42);
pub(crate) const MASK_OR: Code = code("korw", 1, 0, 0, 0x45);
pub(crate) const MASK_EQUAL: Code = code("kxnorw", 1, 0, 0, 0x46);
pub(crate) const MASK_XOR: Code = code("kxorw", 1, 0, 0, 0x47);
/// The first operand's low eight bits above the second's.
pub(crate) const MASK_JOIN: Code = code("kunpckbw", 1, 1, 0, 0x4b);
pub(crate) const MASK_NOT: Code = code("knotw", 1, 0, 0, 0x44);
pub(crate) const MASK_SHIFT_RIGHT: Code = code("kshiftrw", 3, 1, 1, 0x30);
pub(crate) const MASK_LOAD: Code = code("kmovw", 1, 0, 0, 0x90);
pub(crate) const MASK_OF_GENERAL: Code = code("kmovw", 1, 0, 0, 0x92);
/// Of 64 places.
pub(crate) const LONG_MASK_AND: Code = code("kandq", 1, 0, 1, 0x41);
pub(crate) const LONG_MASK_OR: Code = code("korq", 1, 0, 1, 0x45);
pub(crate) const LONG_MASK_NOT: Code = code("knotq", 1, 0, 1, 0x44);
pub(crate) const LONG_MASK_STORE: Code = code("kmovq", 1, 0, 1, 0x91);
pub(crate) const LONG_MASK_LOAD: Code = code("kmovq", 1, 0, 1, 0x90);
pub(crate) const LONG_MASK_OF_GENERAL: Code = code("kmovq", 1, 3, 1, 0x92);

/// Those of AVX2, whose masks are vectors.
pub(crate) const BLEND_BY: Pair = [code("vblendvps", 3, 1, 0, 0x4a), code("vblendvpd", 3, 1, 0, 0x4b)];
pub(crate) const LOAD_SOME: Pair = [code("vmaskmovps", 2, 1, 0, 0x2c), code("vmaskmovpd", 2, 1, 0, 0x2d)];
pub(crate) const STORE_SOME: Pair = [code("vmaskmovps", 2, 1, 0, 0x2e), code("vmaskmovpd", 2, 1, 0, 0x2f)];
pub(crate) const EQUAL: Pair = [code("vpcmpeqd", 1, 1, 0, 0x76), code("vpcmpeqq", 2, 1, 0, 0x29)];
pub(crate) const GREATER: Pair = [code("vpcmpgtd", 1, 1, 0, 0x66), code("vpcmpgtq", 2, 1, 0, 0x37)];
pub(crate) const AND_NOT: Code = code("vpandn", 1, 1, 0, 0xdf);
pub(crate) const MULTIPLY_LOW: Code = code("vpmuludq", 1, 1, 0, 0xf4);
/// The upper 128 bits of 256, and two of 128 as one of 256.
pub(crate) const UPPER_128: Code = code("vextractf128", 3, 1, 0, 0x19);
pub(crate) const JOIN_128: Code = code("vinsertf128", 3, 1, 0, 0x18);
pub(crate) const JOIN_ANY_128: Code = code("vperm2f128", 3, 1, 0, 0x06);
/// Lanes of two vectors, each at its place: the second's where the immediate has a bit.
pub(crate) const CHOOSE: Pair = [code("vblendps", 3, 1, 0, 0x0c), code("vblendpd", 3, 1, 0, 0x0d)];
/// Lanes of two vectors in turn: the lower, or the upper ones of each 128 bits.
pub(crate) const WEAVE_LOWER: Pair = [code("vunpcklps", 1, 0, 0, 0x14), code("vunpcklpd", 1, 1, 0, 0x14)];
pub(crate) const WEAVE_UPPER: Pair = [code("vunpckhps", 1, 0, 0, 0x15), code("vunpckhpd", 1, 1, 0, 0x15)];
pub(crate) const SHUFFLE: Code = code("vshufps", 1, 0, 0, 0xc6);
pub(crate) const QUARTERS: Code = code("vpermq", 3, 1, 1, 0x00);
/// Two vectors of 128 bits, saturating to unsigned elements of half the size.
pub(crate) const PACK_16: Code = code("vpackusdw", 2, 1, 0, 0x2b).short();
pub(crate) const PACK_8: Code = code("vpackuswb", 1, 1, 0, 0x67).short();
pub(crate) const STORE_64: Code = code("vmovq", 1, 1, 0, 0xd6).short();
pub(crate) const STORE_128: Code = STORE[0].short();
/// The signs of lanes as bits of a general register.
pub(crate) const SIGNS: Pair = [code("vmovmskps", 1, 0, 0, 0x50), code("vmovmskpd", 1, 1, 0, 0x50)];
/// An element of 8, 16, 32 or 64 bits, by its number, from and to memory.
pub(crate) const INSERT: [Code; 2] = [code("vpinsrb", 3, 1, 0, 0x20).short(), code("vpinsrw", 1, 1, 0, 0xc4).short()];
pub(crate) const EXTRACT: [Code; 4] = [
    code("vpextrb", 3, 1, 0, 0x14).short(),
    code("vpextrw", 3, 1, 0, 0x15).short(),
    code("vpextrd", 3, 1, 0, 0x16).short(),
    code("vpextrq", 3, 1, 1, 0x16).short(),
];

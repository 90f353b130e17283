//! The table of instructions: their names, levels and encodings.
//!
//! Names and encodings are those of Intel's manual, volume 2. An instruction of both levels has two forms: for AVX2,
//! 256-bit vectors with a VEX prefix (volume 2, section 2.3); for AVX-512, 512-bit vectors with an EVEX prefix (section
//! 2.7).
//!
//! Invariant: an independent disassembler agrees with each row (see the test of encodings).

use super::Level;

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct OpcodeRow {
    /// The name with EVEX.
    pub name: &'static str,
    /// The name with VEX.
    pub vex_name: &'static str,
    /// The opcode map. 1: 0F, 2: 0F38, 3: 0F3A.
    pub map: u8,
    /// The implied prefix. 0: none, 1: 66, 2: F3, 3: F2.
    pub prefix: u8,
    /// `W` with EVEX.
    pub w: u8,
    /// `W` with VEX.
    pub vex_w: u8,
    /// The opcode byte.
    pub opcode: u8,
    /// The constant in `ModRM.reg`, if that is no operand. The result is then in `vvvv`.
    pub digit: Option<u8>,
    /// Whether the operand in `ModRM.rm` is the result.
    pub stores: bool,
    /// Whether the two operands may be swapped.
    pub commutes: bool,
    /// The class of the result, if it is not memory.
    pub result: ResultClass,
    /// Whether the VEX form has 128-bit vectors.
    pub xmm: bool,
    /// Whether the index register of the address is a vector.
    pub gathers: bool,
    /// With EVEX, the unit of one-byte displacements, in bytes.
    pub scale: u8,
    /// Whether the EVEX form takes a mask.
    pub masked: bool,
    /// The levels that have it.
    pub levels: Levels,
}

/// The class of an instruction's result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ResultClass {
    /// A vector.
    Vector,
    /// A mask with EVEX, a vector with VEX.
    Mask,
    /// A general register.
    General,
}

/// The levels that have an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Levels {
    /// Both.
    Both,
    /// With VEX.
    Avx2,
    /// With EVEX.
    Avx512,
    /// AVX-512 only, on mask registers; with VEX.
    Masks,
}

const fn row(name: &'static str, map: u8, prefix: u8, w: u8, opcode: u8) -> OpcodeRow {
    OpcodeRow {
        name,
        vex_name: name,
        map,
        prefix,
        w,
        vex_w: w,
        opcode,
        digit: None,
        stores: false,
        commutes: false,
        result: ResultClass::Vector,
        xmm: false,
        gathers: false,
        scale: 64,
        masked: true,
        levels: Levels::Both,
    }
}

impl OpcodeRow {
    const fn avx2(self) -> OpcodeRow {
        OpcodeRow { levels: Levels::Avx2, ..self }
    }

    const fn avx512(self) -> OpcodeRow {
        OpcodeRow { levels: Levels::Avx512, ..self }
    }

    const fn on_masks(self) -> OpcodeRow {
        OpcodeRow { levels: Levels::Masks, ..self }
    }

    const fn stores(self) -> OpcodeRow {
        OpcodeRow { stores: true, ..self }
    }

    const fn without_mask(self) -> OpcodeRow {
        OpcodeRow { masked: false, ..self }
    }

    const fn commutes(self) -> OpcodeRow {
        OpcodeRow { commutes: true, ..self }
    }

    const fn xmm(self) -> OpcodeRow {
        OpcodeRow { xmm: true, ..self }
    }

    const fn gathers(self) -> OpcodeRow {
        OpcodeRow { gathers: true, ..self }
    }

    const fn gives_mask(self) -> OpcodeRow {
        OpcodeRow { result: ResultClass::Mask, ..self }
    }

    const fn gives_general(self) -> OpcodeRow {
        OpcodeRow { result: ResultClass::General, ..self }
    }

    const fn digit(self, digit: u8) -> OpcodeRow {
        OpcodeRow { digit: Some(digit), ..self }
    }

    const fn scale(self, scale: u8) -> OpcodeRow {
        OpcodeRow { scale, ..self }
    }

    const fn vex_name(self, vex_name: &'static str) -> OpcodeRow {
        OpcodeRow { vex_name, ..self }
    }

    const fn vex_w(self, vex_w: u8) -> OpcodeRow {
        OpcodeRow { vex_w, ..self }
    }

    /// Returns the name at a level.
    pub fn name_at(&self, level: Level) -> &'static str {
        match level {
            Level::Avx2 => self.vex_name,
            Level::Avx512 => self.name,
        }
    }

    /// Returns whether a level has the instruction.
    pub fn is_at(&self, level: Level) -> bool {
        match self.levels {
            Levels::Both => true,
            Levels::Avx2 => level == Level::Avx2,
            Levels::Avx512 | Levels::Masks => level == Level::Avx512,
        }
    }
}

/// Lists the instructions once: the names of [`Code`], and the rows of the table.
macro_rules! table {
    ($($code:ident = $row:expr;)*) => {
        /// An instruction on vectors or masks.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[allow(missing_docs)]
        pub enum Code {
            $($code),*
        }

        impl Code {
            /// All instructions of the table.
            pub const ALL: &[Code] = &[$(Code::$code),*];
        }

        static TABLE: [OpcodeRow; Code::ALL.len()] = [$($row),*];
    };
}

impl Code {
    /// Returns the row of the instruction.
    pub fn facts(self) -> &'static OpcodeRow {
        &TABLE[self as usize]
    }
}

table! {
    Vaddps = row("vaddps", 1, 0, 0, 0x58).commutes();
    Vaddpd = row("vaddpd", 1, 1, 1, 0x58).commutes();
    Vsubps = row("vsubps", 1, 0, 0, 0x5c);
    Vsubpd = row("vsubpd", 1, 1, 1, 0x5c);
    Vmulps = row("vmulps", 1, 0, 0, 0x59).commutes();
    Vmulpd = row("vmulpd", 1, 1, 1, 0x59).commutes();
    Vdivps = row("vdivps", 1, 0, 0, 0x5e);
    Vdivpd = row("vdivpd", 1, 1, 1, 0x5e);
    Vminps = row("vminps", 1, 0, 0, 0x5d);
    Vminpd = row("vminpd", 1, 1, 1, 0x5d);
    Vmaxps = row("vmaxps", 1, 0, 0, 0x5f);
    Vmaxpd = row("vmaxpd", 1, 1, 1, 0x5f);
    Vsqrtps = row("vsqrtps", 1, 0, 0, 0x51);
    Vsqrtpd = row("vsqrtpd", 1, 1, 1, 0x51);
    Vrangeps = row("vrangeps", 3, 1, 0, 0x50).avx512();
    Vrangepd = row("vrangepd", 3, 1, 1, 0x50).avx512();
    Vrndscaleps = row("vrndscaleps", 3, 1, 0, 0x08).vex_name("vroundps");
    Vrndscalepd = row("vrndscalepd", 3, 1, 1, 0x09).vex_name("vroundpd");
    Vfmadd132ps = row("vfmadd132ps", 2, 1, 0, 0x98);
    Vfmadd132pd = row("vfmadd132pd", 2, 1, 1, 0x98);
    Vfmadd213ps = row("vfmadd213ps", 2, 1, 0, 0xa8);
    Vfmadd213pd = row("vfmadd213pd", 2, 1, 1, 0xa8);
    Vfmadd231ps = row("vfmadd231ps", 2, 1, 0, 0xb8);
    Vfmadd231pd = row("vfmadd231pd", 2, 1, 1, 0xb8);
    Vfnmadd132ps = row("vfnmadd132ps", 2, 1, 0, 0x9c);
    Vfnmadd132pd = row("vfnmadd132pd", 2, 1, 1, 0x9c);
    Vfnmadd213ps = row("vfnmadd213ps", 2, 1, 0, 0xac);
    Vfnmadd213pd = row("vfnmadd213pd", 2, 1, 1, 0xac);
    Vfnmadd231ps = row("vfnmadd231ps", 2, 1, 0, 0xbc);
    Vfnmadd231pd = row("vfnmadd231pd", 2, 1, 1, 0xbc);
    Vcmpps = row("vcmpps", 1, 0, 0, 0xc2).gives_mask();
    Vcmppd = row("vcmppd", 1, 1, 1, 0xc2).gives_mask();
    Vblendmps = row("vblendmps", 2, 1, 0, 0x65).avx512();
    Vblendmpd = row("vblendmpd", 2, 1, 1, 0x65).avx512();
    Vpaddd = row("vpaddd", 1, 1, 0, 0xfe).commutes();
    Vpaddq = row("vpaddq", 1, 1, 1, 0xd4).commutes();
    Vpsubd = row("vpsubd", 1, 1, 0, 0xfa);
    Vpsubq = row("vpsubq", 1, 1, 1, 0xfb);
    Vpmulld = row("vpmulld", 2, 1, 0, 0x40).commutes();
    Vpmullq = row("vpmullq", 2, 1, 1, 0x40).commutes().avx512();
    Vpminsd = row("vpminsd", 2, 1, 0, 0x39).commutes();
    Vpminsq = row("vpminsq", 2, 1, 1, 0x39).commutes().avx512();
    Vpmaxsd = row("vpmaxsd", 2, 1, 0, 0x3d).commutes();
    Vpmaxsq = row("vpmaxsq", 2, 1, 1, 0x3d).commutes().avx512();
    Vpminud = row("vpminud", 2, 1, 0, 0x3b).commutes();
    Vpminuq = row("vpminuq", 2, 1, 1, 0x3b).commutes().avx512();
    Vpmaxud = row("vpmaxud", 2, 1, 0, 0x3f).commutes();
    Vpmaxuq = row("vpmaxuq", 2, 1, 1, 0x3f).commutes().avx512();
    Vpabsd = row("vpabsd", 2, 1, 0, 0x1e);
    Vpabsq = row("vpabsq", 2, 1, 1, 0x1f).avx512();
    Vplzcntd = row("vplzcntd", 2, 1, 0, 0x44).avx512();
    Vplzcntq = row("vplzcntq", 2, 1, 1, 0x44).avx512();
    Vpopcntd = row("vpopcntd", 2, 1, 0, 0x55).avx512();
    Vpopcntq = row("vpopcntq", 2, 1, 1, 0x55).avx512();
    Vpandd = row("vpandd", 1, 1, 0, 0xdb).commutes().vex_name("vpand");
    Vpandq = row("vpandq", 1, 1, 1, 0xdb).commutes().vex_name("vpand");
    Vpord = row("vpord", 1, 1, 0, 0xeb).commutes().vex_name("vpor");
    Vporq = row("vporq", 1, 1, 1, 0xeb).commutes().vex_name("vpor");
    Vpxord = row("vpxord", 1, 1, 0, 0xef).commutes().vex_name("vpxor");
    Vpxorq = row("vpxorq", 1, 1, 1, 0xef).commutes().vex_name("vpxor");
    Vpslld = row("vpslld", 1, 1, 0, 0x72).digit(6);
    Vpsllq = row("vpsllq", 1, 1, 1, 0x73).digit(6);
    Vpsrld = row("vpsrld", 1, 1, 0, 0x72).digit(2);
    Vpsrlq = row("vpsrlq", 1, 1, 1, 0x73).digit(2);
    Vpsrad = row("vpsrad", 1, 1, 0, 0x72).digit(4);
    Vpsraq = row("vpsraq", 1, 1, 1, 0x72).avx512().digit(4);
    Vpcmpd = row("vpcmpd", 3, 1, 0, 0x1f).avx512().gives_mask();
    Vpcmpq = row("vpcmpq", 3, 1, 1, 0x1f).avx512().gives_mask();
    Vpcmpud = row("vpcmpud", 3, 1, 0, 0x1e).avx512().gives_mask();
    Vpcmpuq = row("vpcmpuq", 3, 1, 1, 0x1e).avx512().gives_mask();
    Vptestmd = row("vptestmd", 2, 1, 0, 0x27).avx512().gives_mask();
    Vptestmq = row("vptestmq", 2, 1, 1, 0x27).avx512().gives_mask();
    Vptestnmd = row("vptestnmd", 2, 2, 0, 0x27).avx512().gives_mask();
    Vptestnmq = row("vptestnmq", 2, 2, 1, 0x27).avx512().gives_mask();
    Vbroadcastss = row("vbroadcastss", 2, 1, 0, 0x18).scale(4);
    Vbroadcastsd = row("vbroadcastsd", 2, 1, 1, 0x19).scale(8).vex_w(0);
    Vgatherdps = row("vgatherdps", 2, 1, 0, 0x92).scale(4).gathers();
    Vgatherdpd = row("vgatherdpd", 2, 1, 1, 0x92).scale(8).gathers();
    Vscatterdps = row("vscatterdps", 2, 1, 0, 0xa2).avx512().stores().scale(4).gathers();
    Vscatterdpd = row("vscatterdpd", 2, 1, 1, 0xa2).avx512().stores().scale(8).gathers();
    Vmovups = row("vmovups", 1, 0, 0, 0x10);
    Vmovupd = row("vmovupd", 1, 1, 1, 0x10);
    VmovupsStore = row("vmovups", 1, 0, 0, 0x11).stores();
    VmovupdStore = row("vmovupd", 1, 1, 1, 0x11).stores();
    Vpermps = row("vpermps", 2, 1, 0, 0x16);
    Vpermpd = row("vpermpd", 2, 1, 1, 0x16).avx512();
    Vpermt2ps = row("vpermt2ps", 2, 1, 0, 0x7f).avx512();
    Vpermt2pd = row("vpermt2pd", 2, 1, 1, 0x7f).avx512();
    Vcvtdq2ps = row("vcvtdq2ps", 1, 0, 0, 0x5b);
    Vcvtudq2ps = row("vcvtudq2ps", 1, 3, 0, 0x7a).avx512();
    Vcvttps2dq = row("vcvttps2dq", 1, 2, 0, 0x5b);
    Vcvttps2udq = row("vcvttps2udq", 1, 0, 0, 0x78).avx512();
    Vcvtdq2pd = row("vcvtdq2pd", 1, 2, 0, 0xe6).scale(32);
    Vcvtudq2pd = row("vcvtudq2pd", 1, 2, 0, 0x7a).avx512().scale(32);
    Vcvtps2pd = row("vcvtps2pd", 1, 0, 0, 0x5a).scale(32);
    Vpmovsxdq = row("vpmovsxdq", 2, 1, 0, 0x25).scale(32);
    Vpmovzxdq = row("vpmovzxdq", 2, 1, 0, 0x35).scale(32);
    Vcvttpd2dq = row("vcvttpd2dq", 1, 1, 1, 0xe6);
    Vcvttpd2udq = row("vcvttpd2udq", 1, 0, 1, 0x78).avx512();
    Vcvtpd2ps = row("vcvtpd2ps", 1, 1, 1, 0x5a);
    Vcvtqq2ps = row("vcvtqq2ps", 1, 0, 1, 0x5b).avx512();
    Vcvtuqq2ps = row("vcvtuqq2ps", 1, 3, 1, 0x7a).avx512();
    Vpmovqd = row("vpmovqd", 2, 2, 0, 0x35).avx512().stores().scale(32);
    Vcvtqq2pd = row("vcvtqq2pd", 1, 2, 1, 0xe6).avx512();
    Vcvtuqq2pd = row("vcvtuqq2pd", 1, 2, 1, 0x7a).avx512();
    Vcvttpd2qq = row("vcvttpd2qq", 1, 1, 1, 0x7a).avx512();
    Vcvttpd2uqq = row("vcvttpd2uqq", 1, 1, 1, 0x78).avx512();
    Vextractf64x4 = row("vextractf64x4", 3, 1, 1, 0x1b).avx512().stores().scale(32);
    Vinsertf64x4 = row("vinsertf64x4", 3, 1, 1, 0x1a).avx512().scale(32);
    Vpmovzxbd = row("vpmovzxbd", 2, 1, 0, 0x31).scale(16);
    Vpmovsxbd = row("vpmovsxbd", 2, 1, 0, 0x21).scale(16);
    Vpmovzxwd = row("vpmovzxwd", 2, 1, 0, 0x33).scale(32);
    Vpmovsxwd = row("vpmovsxwd", 2, 1, 0, 0x23).scale(32);
    Vpmovdb = row("vpmovdb", 2, 2, 0, 0x31).avx512().stores().scale(16);
    Vpmovdw = row("vpmovdw", 2, 2, 0, 0x33).avx512().stores().scale(32);
    Vmovdqu8 = row("vmovdqu8", 1, 3, 0, 0x6f).avx512();
    Vpshufb = row("vpshufb", 2, 1, 0, 0x00);
    Vmovaps = row("vmovaps", 1, 0, 0, 0x28);
    Vmovapd = row("vmovapd", 1, 1, 1, 0x28);
    Vpaddb = row("vpaddb", 1, 1, 0, 0xfc).commutes();
    Vpaddw = row("vpaddw", 1, 1, 0, 0xfd).commutes();
    Vpsubb = row("vpsubb", 1, 1, 0, 0xf8);
    Vpsubw = row("vpsubw", 1, 1, 0, 0xf9);
    Vpminsb = row("vpminsb", 2, 1, 0, 0x38).commutes();
    Vpminsw = row("vpminsw", 1, 1, 0, 0xea).commutes();
    Vpmaxsb = row("vpmaxsb", 2, 1, 0, 0x3c).commutes();
    Vpmaxsw = row("vpmaxsw", 1, 1, 0, 0xee).commutes();
    Vpminub = row("vpminub", 1, 1, 0, 0xda).commutes();
    Vpminuw = row("vpminuw", 2, 1, 0, 0x3a).commutes();
    Vpmaxub = row("vpmaxub", 1, 1, 0, 0xde).commutes();
    Vpmaxuw = row("vpmaxuw", 2, 1, 0, 0x3e).commutes();
    Vpabsb = row("vpabsb", 2, 1, 0, 0x1c);
    Vpabsw = row("vpabsw", 2, 1, 0, 0x1d);
    Vpavgb = row("vpavgb", 1, 1, 0, 0xe0).commutes();
    Vpavgw = row("vpavgw", 1, 1, 0, 0xe3).commutes();
    Vpcmpb = row("vpcmpb", 3, 1, 0, 0x3f).avx512().gives_mask();
    Vpcmpw = row("vpcmpw", 3, 1, 1, 0x3f).avx512().gives_mask();
    Vpcmpub = row("vpcmpub", 3, 1, 0, 0x3e).avx512().gives_mask();
    Vpcmpuw = row("vpcmpuw", 3, 1, 1, 0x3e).avx512().gives_mask();
    Vpblendmb = row("vpblendmb", 2, 1, 0, 0x66).avx512();
    Vpblendmw = row("vpblendmw", 2, 1, 1, 0x66).avx512();
    Vpmullw = row("vpmullw", 1, 1, 0, 0xd5).commutes();
    Vpsllw = row("vpsllw", 1, 1, 0, 0x71).digit(6);
    Vpsrlw = row("vpsrlw", 1, 1, 0, 0x71).digit(2);
    Vpsraw = row("vpsraw", 1, 1, 0, 0x71).digit(4);
    Vpmaddwd = row("vpmaddwd", 1, 1, 0, 0xf5).commutes();
    Vpmaddubsw = row("vpmaddubsw", 2, 1, 0, 0x04);
    Vpsadbw = row("vpsadbw", 1, 1, 0, 0xf6).commutes().without_mask();
    Kandw = row("kandw", 1, 0, 0, 0x41).on_masks();
    Kandnw = row("kandnw", 1, 0, 0, 0x42).on_masks();
    Korw = row("korw", 1, 0, 0, 0x45).on_masks();
    Kxnorw = row("kxnorw", 1, 0, 0, 0x46).on_masks();
    Kxorw = row("kxorw", 1, 0, 0, 0x47).on_masks();
    Kunpckbw = row("kunpckbw", 1, 1, 0, 0x4b).on_masks();
    Knotw = row("knotw", 1, 0, 0, 0x44).on_masks();
    Kshiftrw = row("kshiftrw", 3, 1, 1, 0x30).on_masks();
    KmovwLoad = row("kmovw", 1, 0, 0, 0x90).on_masks();
    KmovwGeneral = row("kmovw", 1, 0, 0, 0x92).on_masks();
    Kandq = row("kandq", 1, 0, 1, 0x41).on_masks();
    Korq = row("korq", 1, 0, 1, 0x45).on_masks();
    Knotq = row("knotq", 1, 0, 1, 0x44).on_masks();
    KmovqStore = row("kmovq", 1, 0, 1, 0x91).on_masks().stores();
    KmovqLoad = row("kmovq", 1, 0, 1, 0x90).on_masks();
    KmovqGeneral = row("kmovq", 1, 3, 1, 0x92).on_masks();
    Vblendvps = row("vblendvps", 3, 1, 0, 0x4a).avx2();
    Vblendvpd = row("vblendvpd", 3, 1, 0, 0x4b).avx2();
    Vmaskmovps = row("vmaskmovps", 2, 1, 0, 0x2c).avx2();
    Vmaskmovpd = row("vmaskmovpd", 2, 1, 0, 0x2d).avx2();
    VmaskmovpsStore = row("vmaskmovps", 2, 1, 0, 0x2e).avx2().stores();
    VmaskmovpdStore = row("vmaskmovpd", 2, 1, 0, 0x2f).avx2().stores();
    Vpcmpeqd = row("vpcmpeqd", 1, 1, 0, 0x76).commutes().avx2();
    Vpcmpeqq = row("vpcmpeqq", 2, 1, 0, 0x29).commutes().avx2();
    Vpcmpgtd = row("vpcmpgtd", 1, 1, 0, 0x66).avx2();
    Vpcmpgtq = row("vpcmpgtq", 2, 1, 0, 0x37).avx2();
    Vpandn = row("vpandn", 1, 1, 0, 0xdf).avx2();
    Vpmuludq = row("vpmuludq", 1, 1, 1, 0xf4).commutes();
    Vpmuldq = row("vpmuldq", 2, 1, 1, 0x28).commutes();
    Vextractf128 = row("vextractf128", 3, 1, 0, 0x19).avx2().stores();
    Vinsertf128 = row("vinsertf128", 3, 1, 0, 0x18).avx2();
    Vperm2f128 = row("vperm2f128", 3, 1, 0, 0x06).avx2();
    Vblendps = row("vblendps", 3, 1, 0, 0x0c).avx2();
    Vblendpd = row("vblendpd", 3, 1, 0, 0x0d).avx2();
    Vunpcklps = row("vunpcklps", 1, 0, 0, 0x14).avx2();
    Vunpcklpd = row("vunpcklpd", 1, 1, 0, 0x14).avx2();
    Vunpckhps = row("vunpckhps", 1, 0, 0, 0x15).avx2();
    Vunpckhpd = row("vunpckhpd", 1, 1, 0, 0x15).avx2();
    Vshufps = row("vshufps", 1, 0, 0, 0xc6).avx2();
    Vpermq = row("vpermq", 3, 1, 1, 0x00).avx2();
    Vpackusdw = row("vpackusdw", 2, 1, 0, 0x2b).avx2().xmm();
    Vpackuswb = row("vpackuswb", 1, 1, 0, 0x67).avx2().xmm();
    Vmovq = row("vmovq", 1, 1, 0, 0xd6).avx2().xmm().stores();
    Vmovmskps = row("vmovmskps", 1, 0, 0, 0x50).avx2().gives_general();
    Vmovmskpd = row("vmovmskpd", 1, 1, 0, 0x50).avx2().gives_general();
    Vpinsrb = row("vpinsrb", 3, 1, 0, 0x20).avx2().xmm();
    Vpinsrw = row("vpinsrw", 1, 1, 0, 0xc4).avx2().xmm();
    Vpextrb = row("vpextrb", 3, 1, 0, 0x14).avx2().xmm().stores();
    Vpextrw = row("vpextrw", 3, 1, 0, 0x15).avx2().xmm().stores();
    Vpextrd = row("vpextrd", 3, 1, 0, 0x16).avx2().xmm().stores();
    Vpextrq = row("vpextrq", 3, 1, 1, 0x16).avx2().xmm().stores();
    VmovupsXmmStore = row("vmovups", 1, 0, 0, 0x11).avx2().xmm().stores();
    Vpcmpeqb = row("vpcmpeqb", 1, 1, 0, 0x74).commutes().avx2();
    Vpcmpeqw = row("vpcmpeqw", 1, 1, 0, 0x75).commutes().avx2();
    Vpcmpgtb = row("vpcmpgtb", 1, 1, 0, 0x64).avx2();
    Vpcmpgtw = row("vpcmpgtw", 1, 1, 0, 0x65).avx2();
    Vpblendvb = row("vpblendvb", 3, 1, 0, 0x4c).avx2();
    Vpbroadcastb = row("vpbroadcastb", 2, 1, 0, 0x78).scale(1);
    Vpbroadcastw = row("vpbroadcastw", 2, 1, 0, 0x79).scale(2);
}

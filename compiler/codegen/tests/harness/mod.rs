//! Runs a codelet compiled and interpreted on equal memory, and compares all results.
//!
//! Invariant: except for `limits.rs`, only this file calls compiled code; every view of a [`Case`] is inside its
//! memory.

#![allow(dead_code)]

pub mod build;
pub mod choices;
pub mod columns;
pub mod lanes;
pub mod narrow;
pub mod natives;
pub mod random;
pub mod reference;
pub mod source;

use cranelift_entity::{EntityRef, EntitySet, SecondaryMap};
use girder_codegen::abi::{Batch, Failure, Status};
use girder_codegen::{CodeTarget, CodegenError, Level, compile_for};
use girder_codelet::cost::Points;
use girder_codelet::facts::Weights;
use girder_codelet::interpret::{Interpreter, Stop, VertexMemory};
use girder_codelet::kernel::{Addressing, FieldLayout, KernelSpec, Lines};
use girder_codelet::sizes::Shape;
use girder_codelet::{Sizes, bind_sizes};
use girder_ir::codelet::{Codelet, Dir};
use girder_ir::ids::{FieldId, SiteId};
use girder_ir::types::{ElemType, Scalar};
use girder_source::Session;

/// A codelet with its vertices.
#[derive(Clone, Debug)]
pub struct Case {
    pub codelet: Codelet,
    /// By field; empty for `const` ones.
    pub shapes: Vec<Shape>,
    /// Byte strides by field.
    pub strides: Vec<FieldLayout>,
    /// By instance, then by field: the byte of element (0, …, 0).
    pub offsets: Vec<Vec<u64>>,
    /// By instance, then by field; read at `const` fields.
    pub consts: Vec<Vec<u64>>,
    pub memory: Vec<u8>,
    pub workers: u32,
    pub iterations: u64,
    pub total_iterations: u64,
    /// The points at which executions are counted.
    pub points: Points,
}

/// The results of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    pub failure: Option<Failure>,
    pub memory: Vec<u8>,
    /// The counters, instance by instance; empty if a check failed.
    pub counters: Vec<u64>,
}

/// The layout of a field's views in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread {
    Contiguous,
    /// The last dimension first, with gaps.
    Transposed,
    Reversed,
    /// All elements are one; only for `in` fields.
    Repeated,
}

/// The layout of the views of several vertices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Neighbours {
    /// Each vertex has its own memory.
    Separate,
    /// Equal elements of all vertices are adjacent; repeated fields are shared.
    SideBySide,
}

impl Case {
    /// Lays out fields one after the other for each instance; element bytes come from `fill`.
    pub fn new(
        codelet: Codelet,
        shapes: Vec<Shape>,
        spreads: &[Spread],
        instances: usize,
        fill: impl FnMut(ElemType) -> u64,
    ) -> Case {
        Case::with(codelet, shapes, spreads, (instances, Neighbours::Separate), fill)
    }

    /// As [`Case::new`], with a choice of the layout of instances.
    pub fn with(
        codelet: Codelet,
        shapes: Vec<Shape>,
        spreads: &[Spread],
        (instances, neighbours): (usize, Neighbours),
        mut fill: impl FnMut(ElemType) -> u64,
    ) -> Case {
        let mut case = Case {
            shapes,
            strides: Vec::new(),
            offsets: Vec::new(),
            consts: Vec::new(),
            memory: vec![0xa5; 3],
            workers: 3,
            iterations: 5,
            total_iterations: 1 << 30,
            points: Points::default(),
            codelet,
        };
        for (field, decl) in &case.codelet.fields {
            let spread = spreads.get(field.index()).copied().unwrap_or(Spread::Contiguous);
            let spread = if decl.dir != Dir::In && spread == Spread::Repeated { Spread::Reversed } else { spread };
            let mut strides = strides(&case.shapes[field.index()], decl.ty.bytes(), spread);
            if neighbours == Neighbours::SideBySide {
                strides.iter_mut().for_each(|s| *s *= instances as i64);
            }
            case.strides.push(strides);
        }
        if neighbours == Neighbours::SideBySide {
            case.side_by_side(spreads, instances, fill);
            return case;
        }
        for _ in 0..instances {
            let mut offsets = Vec::new();
            let mut consts = Vec::new();
            for (field, decl) in case.codelet.fields.clone().iter() {
                consts.push(fill(decl.ty));
                offsets.push(if decl.dir == Dir::Const { 0 } else { case.room(field, decl.ty, &mut fill) });
            }
            case.offsets.push(offsets);
            case.consts.push(consts);
        }
        case
    }

    fn side_by_side(&mut self, spreads: &[Spread], instances: usize, mut fill: impl FnMut(ElemType) -> u64) {
        self.offsets = vec![Vec::new(); instances];
        self.consts = vec![Vec::new(); instances];
        for (field, decl) in self.codelet.fields.clone().iter() {
            let constant = fill(decl.ty);
            self.consts.iter_mut().for_each(|c| c.push(constant));
            if decl.dir == Dir::Const {
                self.offsets.iter_mut().for_each(|o| o.push(0));
                continue;
            }
            let shared = decl.dir == Dir::In && spreads.get(field.index()) == Some(&Spread::Repeated);
            let own = if shared { 0 } else { decl.ty.bytes() as usize };
            let first = self.room(field, decl.ty, &mut fill);
            self.memory.resize(self.memory.len() + own * instances, 0xa5);
            for n in 0..instances {
                let offset = first + (own * n) as u64;
                self.offsets[n].push(offset);
                for at in element_offsets(&self.shapes[field.index()], &self.strides[field.index()]) {
                    put(&mut self.memory, (offset as i64 + at) as usize, decl.ty, fill(decl.ty));
                }
            }
        }
    }

    fn room(&mut self, field: FieldId, ty: ElemType, fill: &mut impl FnMut(ElemType) -> u64) -> u64 {
        let (mut least, mut greatest) = (0, 0);
        for (&n, &s) in self.shapes[field.index()].iter().zip(&self.strides[field.index()]) {
            let reach = s * (n as i64 - 1).max(0);
            least += reach.min(0);
            greatest += reach.max(0);
        }
        let start = self.memory.len() as i64;
        // An odd gap, so that nothing is aligned.
        let end = start + greatest - least + i64::from(ty.bytes());
        self.memory.resize(end as usize + 3, 0xa5);
        let origin = (start - least) as u64;
        for at in element_offsets(&self.shapes[field.index()], &self.strides[field.index()]) {
            put(&mut self.memory, (origin as i64 + at) as usize, ty, fill(ty));
        }
        origin
    }

    pub fn sizes(&self) -> Sizes {
        bind_sizes(&self.codelet, &self.shapes, &[]).expect("the case's shapes fit")
    }

    /// Returns the bytes of all elements of all edge fields of all instances.
    fn elements(&self) -> Vec<(usize, ElemType)> {
        let mut result = Vec::new();
        for offsets in &self.offsets {
            for (field, decl) in self.codelet.edges() {
                let n = field.index();
                let at = element_offsets(&self.shapes[n], &self.strides[n]).into_iter();
                result.extend(at.map(|at| ((offsets[n] as i64 + at) as usize, decl.ty)));
            }
        }
        result
    }

    /// Makes all NaNs equal.
    fn same_nans(&self, memory: &mut [u8]) {
        for (at, ty) in self.elements() {
            let value = Scalar::from_le_bytes(ty, &memory[at..]);
            if value.as_float().is_some_and(f64::is_nan) {
                put(memory, at, ty, girder_codelet::scalar::bits(ty, ty, value.bits));
            }
        }
    }

    pub fn interpret(&self) -> Outcome {
        let mut memory = self.memory.clone();
        let sizes = self.sizes();
        let mut session = Session::default();
        session.limits.iterations = self.iterations;
        session.limits.total_iterations = self.total_iterations;
        let mut interpreter = Interpreter::new(&self.codelet);
        interpreter.count(&self.points);
        let mut counters = Vec::new();
        let mut failure = None;
        for (n, consts) in self.consts.iter().enumerate() {
            let mut view = View { case: self, offsets: &self.offsets[n], memory: &mut memory };
            match interpreter.run(&sizes, &mut view, consts, self.workers, &session) {
                Ok(()) => counters.extend_from_slice(interpreter.counters()),
                Err(Stop::Cancelled | Stop::Raced(_) | Stop::Exhausted) => panic!("nobody cancelled or watches"),
                Err(Stop::Failed(f)) => {
                    let worker = f.worker.unwrap_or(0);
                    failure = Some(Failure { instance: n as u64, site: f.site.as_u32(), worker, values: f.values });
                    break;
                }
            }
        }
        self.same_nans(&mut memory);
        if failure.is_some() {
            counters.clear();
        }
        Outcome { failure, memory, counters }
    }

    /// Compiles for a host and runs all instances.
    pub fn compiled(
        &self,
        target: &CodeTarget,
        known: (&EntitySet<SiteId>, &Weights),
        (addressing, lines): (Addressing, Option<Lines>),
    ) -> Outcome {
        let mut memory = self.memory.clone();
        let sizes = self.sizes();
        let mut spec = self.spec(&sizes, known, addressing);
        spec.lines = lines;
        let rewritten = girder_host::rewrite(&spec, target.kernel_target());
        let spec = rewritten.as_ref().map_or_else(|| spec.clone(), |r| r.spec(&spec));
        let kernels = compile_for(target, &[spec]).expect("the case compiles");
        let code = kernels.load(target).expect("there is memory for code");
        let mut failure = None;
        let workers = if self.codelet.multi { self.workers as usize } else { 1 };
        let mut counters = vec![0; self.points.len() * workers * self.offsets.len()];
        let edges: Vec<usize> = self.codelet.edges().map(|(f, _)| f.index()).collect();
        let table: Vec<u64> = self.offsets.iter().flat_map(|o| edges.iter().map(|&f| o[f])).collect();
        let narrow: Vec<u32> = table.iter().map(|&o| o as u32).collect();
        let constants: Vec<usize> =
            self.codelet.fields.iter().filter(|(_, f)| f.dir == Dir::Const).map(|(f, _)| f.index()).collect();
        let consts: Vec<u64> = self.consts.iter().flat_map(|c| constants.iter().map(|&f| c[f])).collect();
        let shared = self.consts.iter().all(|c| *c == self.consts[0]);
        let cancel = 0u8;
        let instances = self.offsets.len() as u64;
        // Instances are at a regular distance, because all of them have the same layout.
        let step: Vec<i64> = (0..edges.len())
            .map(|e| if instances > 1 { table[edges.len() + e] as i64 - table[e] as i64 } else { 0 })
            .collect();
        let mut batch = Batch {
            base: memory.as_mut_ptr(),
            offsets: match addressing {
                Addressing::Table32 => narrow.as_ptr().cast(),
                _ => table.as_ptr().cast(),
            },
            start: table.as_ptr(),
            step: step.as_ptr(),
            consts: consts.as_ptr(),
            const_step: if shared { 0 } else { constants.len() as u64 },
            cancel: &raw const cancel,
            imports: &raw const natives::IMPORTS,
            iterations: self.iterations,
            total_iterations: self.total_iterations,
            workers: u64::from(self.workers),
            counters: counters.as_mut_ptr(),
            failure: Failure::default(),
        };
        // SAFETY: all views lie in `memory` and are disjoint, the tables have a row per instance.
        let status = Status::of(unsafe { code.kernel(0)(&mut batch, 0, instances) });
        match status {
            Status::Done => {}
            Status::Failed => {
                failure = Some(batch.failure);
                counters.clear();
            }
            Status::Cancelled => panic!("nobody cancelled"),
        }
        self.same_nans(&mut memory);
        Outcome { failure, memory, counters }
    }

    /// The code before Cranelift's optimiser, with all facts, at a level that this machine may not have.
    pub fn clif(&self, level: Level) -> String {
        self.clif_on(&CodeTarget::with(level).expect("the level can be described"))
    }

    /// As [`Case::clif`], with vectors of 128 bits only.
    pub fn clif_without_vector_kernels(&self) -> String {
        self.clif_on(&CodeTarget::with(Level::Avx2).expect("the level can be described").without_vector_kernels())
    }

    /// The vector kernels for AVX-512, which this machine may not have.
    pub fn vector_kernels(&self) -> String {
        let target = CodeTarget::with(girder_codegen::Level::Avx512).expect("the level can be described");
        self.text_on(&target, girder_codegen::simd_text)
    }

    fn clif_on(&self, target: &CodeTarget) -> String {
        self.text_on(target, girder_codegen::clif_text)
    }

    fn text_on(
        &self,
        target: &CodeTarget,
        text: fn(&CodeTarget, &KernelSpec<'_>) -> Result<String, CodegenError>,
    ) -> String {
        let sizes = self.sizes();
        let facts = girder_codelet::facts(&self.codelet, &sizes);
        let mut spec = self.spec(&sizes, (&facts.proven, &facts.weights), Addressing::Affine);
        spec.lines = self.lines(u64::MAX);
        let rewritten = girder_host::rewrite(&spec, target.kernel_target());
        let spec = rewritten.as_ref().map_or_else(|| spec.clone(), |r| r.spec(&spec));
        text(target, &spec).expect("the case compiles")
    }

    fn spec<'a>(
        &'a self,
        sizes: &'a Sizes,
        (proven, weights): (&'a EntitySet<SiteId>, &'a Weights),
        addressing: Addressing,
    ) -> KernelSpec<'a> {
        let mut strides = SecondaryMap::new();
        for (n, s) in self.strides.iter().enumerate() {
            strides[FieldId::new(n)] = s.clone();
        }
        KernelSpec {
            codelet: &self.codelet,
            sizes,
            strides,
            proven,
            weights,
            addressing,
            lines: None,
            points: Some(&self.points),
        }
    }

    /// Returns the regularity of the instances: all of them are on one line, which the description may cut.
    fn lines(&self, length: u64) -> Option<Lines> {
        let [first, second, ..] = &self.offsets[..] else { return None };
        let mut steps = SecondaryMap::new();
        for (field, _) in self.codelet.edges() {
            steps[field] = second[field.index()] as i64 - first[field.index()] as i64;
        }
        Some(Lines { length, steps, shares_consts: self.consts.iter().all(|c| *c == self.consts[0]) })
    }

    /// Compares compiled code with the interpreter, in all ways of compiling it.
    pub fn check(&self) -> Outcome {
        let expected = self.interpret();
        let none = EntitySet::new();
        let facts = girder_codelet::facts(&self.codelet, &self.sizes());
        let [native, baseline, narrow, bare, evaluated_avx2, evaluated_avx512] = targets();
        for (target, proven, addressing, lines) in [
            (native, &none, Addressing::Table64, None),
            (native, &facts.proven, Addressing::Table32, self.lines(11)),
            (native, &facts.proven, Addressing::Affine, self.lines(u64::MAX)),
            (baseline, &facts.proven, Addressing::Affine, None),
            (narrow, &facts.proven, Addressing::Affine, self.lines(u64::MAX)),
            (bare, &facts.proven, Addressing::Affine, self.lines(u64::MAX)),
            (evaluated_avx2, &facts.proven, Addressing::Affine, self.lines(u64::MAX)),
            (evaluated_avx512, &facts.proven, Addressing::Affine, self.lines(u64::MAX)),
        ] {
            let found = self.compiled(target, (proven, &facts.weights), (addressing, lines));
            assert_eq!(expected.failure, found.failure, "{addressing:?} {target:?}");
            assert_eq!(expected.counters, found.counters, "{addressing:?} {target:?}");
            if expected.memory != found.memory {
                let differ = |&(at, ty): &(usize, ElemType)| {
                    let end = at + ty.bytes() as usize;
                    expected.memory[at..end] != found.memory[at..end]
                };
                match self.elements().iter().find(|e| differ(e)) {
                    Some(&(at, ty)) => panic!(
                        "{addressing:?} {target:?}: byte {at}: interpreted {}, compiled {}",
                        Scalar::from_le_bytes(ty, &expected.memory[at..]),
                        Scalar::from_le_bytes(ty, &found.memory[at..])
                    ),
                    None => panic!("{addressing:?} {target:?}: a byte outside all views was written"),
                }
            }
        }
        expected
    }
}

/// This machine, its architecture without optional instructions, the level between if there is one, that without vector
/// kernels, and with vector kernels for each level that are evaluated.
fn targets() -> &'static [CodeTarget; 6] {
    static TARGETS: std::sync::OnceLock<[CodeTarget; 6]> = std::sync::OnceLock::new();
    TARGETS.get_or_init(|| {
        let between = Level::Avx2.min(Level::best());
        let [native, baseline, narrow, bare] = [Level::best(), Level::Portable, between, between]
            .map(|level| CodeTarget::with(level).expect("this machine has the level"));
        let evaluated = |level| bare.clone().with_reference(level, reference::EVALUATE);
        let [avx2, avx512] = girder_simd::Level::ALL.map(evaluated);
        [native, baseline, narrow, bare.without_vector_kernels(), avx2, avx512]
    })
}

struct View<'a> {
    case: &'a Case,
    offsets: &'a [u64],
    memory: &'a mut [u8],
}

impl View<'_> {
    fn at(&self, field: FieldId, flat: u64) -> usize {
        let mut at = self.offsets[field.index()] as i64;
        let mut rest = flat;
        for (&n, &s) in self.case.shapes[field.index()].iter().zip(&self.case.strides[field.index()]).rev() {
            at += (rest % n) as i64 * s;
            rest /= n;
        }
        at as usize
    }
}

impl VertexMemory for View<'_> {
    fn load(&mut self, field: FieldId, flat_index: u64) -> u64 {
        let ty = self.case.codelet.fields[field].ty;
        Scalar::from_le_bytes(ty, &self.memory[self.at(field, flat_index)..]).bits
    }

    fn store(&mut self, field: FieldId, flat_index: u64, bits: u64) {
        let at = self.at(field, flat_index);
        put(self.memory, at, self.case.codelet.fields[field].ty, bits);
    }
}

pub fn put(memory: &mut [u8], at: usize, ty: ElemType, bits: u64) {
    let n = ty.bytes() as usize;
    memory[at..at + n].copy_from_slice(&bits.to_le_bytes()[..n]);
}

fn strides(shape: &[u64], bytes: u32, spread: Spread) -> FieldLayout {
    let contiguous = KernelSpec::contiguous(shape, bytes);
    match spread {
        Spread::Contiguous => contiguous,
        Spread::Reversed => contiguous.iter().map(|s| -s).collect(),
        Spread::Repeated => shape.iter().map(|_| 0).collect(),
        Spread::Transposed => {
            let mut stride = i64::from(bytes) + 3;
            let mut result: FieldLayout = shape.iter().map(|_| 0).collect();
            for (s, &n) in result.iter_mut().zip(shape) {
                *s = stride;
                stride *= n.max(1) as i64;
            }
            result
        }
    }
}

/// Returns the byte offset of every element, relative to the first.
fn element_offsets(shape: &[u64], strides: &[i64]) -> Vec<i64> {
    let mut result = vec![0];
    for (&n, &s) in shape.iter().zip(strides) {
        result = result.iter().flat_map(|&at| (0..n as i64).map(move |i| at + i * s)).collect();
    }
    result
}

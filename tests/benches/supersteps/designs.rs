//! Ways to copy many short runs, as native code, that the engine's copies are held against; and a gather.
//!
//! Invariant: every design of a copy copies the same segments from one block of memory to another.

/// The order in which segments lie.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// One after the other, with gaps of their own length.
    Gapped,
    /// The same segments in random order.
    Shuffled,
}

impl Source {
    /// For a line of the table.
    pub fn name(self) -> &'static str {
        match self {
            Source::Gapped => "gapped",
            Source::Shuffled => "shuffled",
        }
    }
}

/// One run: first bytes of source and destination.
#[derive(Clone, Copy)]
pub struct Segment {
    from: u32,
    to: u32,
}

/// The numbers below `n` in an order that depends on the seed only.
pub fn shuffled(n: usize, seed: u64) -> Vec<usize> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut below = |n: usize| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as usize % n
    };
    let mut list: Vec<usize> = (0..n).collect();
    (1..n).rev().for_each(|i| list.swap(i, below(i + 1)));
    list
}

/// `count` segments of `bytes` bytes.
pub fn segments(source: Source, bytes: usize, count: usize) -> Vec<Segment> {
    let at = |i: usize| (2 * bytes * i) as u32;
    match source {
        Source::Gapped => (0..count).map(|i| Segment { from: at(i), to: at(i) }).collect(),
        Source::Shuffled => {
            let (p, q) = (shuffled(count, 1), shuffled(count, 2));
            p.iter().zip(&q).map(|(&p, &q)| Segment { from: at(p), to: at(q) }).collect()
        }
    }
}

/// One name and one copy of everything.
pub type Design = (&'static str, Box<dyn FnMut()>);

/// All designs for segments of `bytes` bytes.
pub fn all(source: Source, bytes: usize, count: usize, segments: &[Segment]) -> Vec<Design> {
    let memory = || (vec![1u8; 2 * bytes * count], vec![0u8; 2 * bytes * count]);
    let mut designs: Vec<Design> = Vec::new();
    let (from, mut to) = memory();
    let plan: Vec<(u32, u32, u32)> = segments.iter().map(|s| (s.from, s.to, bytes as u32)).collect();
    designs.push(("memcpy plan", Box::new(move || memcpy_plan(&plan, &from, &mut to))));
    let (from, mut to) = memory();
    let list = segments.to_vec();
    designs.push((
        "constant-length list",
        Box::new(move || match bytes {
            4 => constant::<4>(&list, &from, &mut to),
            16 => constant::<16>(&list, &from, &mut to),
            64 => constant::<64>(&list, &from, &mut to),
            256 => constant::<256>(&list, &from, &mut to),
            1024 => constant::<1024>(&list, &from, &mut to),
            n => panic!("no design for {n} bytes"),
        }),
    ));
    if source == Source::Gapped {
        let (from, mut to) = memory();
        let runs: Vec<Segment> = segments.iter().copied().step_by(16).collect();
        designs.push((
            "strided descriptors",
            Box::new(move || match bytes {
                4 => strided::<4>(&runs, &from, &mut to),
                16 => strided::<16>(&runs, &from, &mut to),
                64 => strided::<64>(&runs, &from, &mut to),
                256 => strided::<256>(&runs, &from, &mut to),
                1024 => strided::<1024>(&runs, &from, &mut to),
                n => panic!("no design for {n} bytes"),
            }),
        ));
    }
    designs
}

/// The irregular vertices of the bench, from a table of what is irregular: `y[i] = a[p[i]] + b[q[i]] + 1`.
pub fn gather(n: usize) -> impl FnMut() {
    let table: Vec<[u32; 2]> = shuffled(n, 1).iter().zip(shuffled(n, 2)).map(|(&p, q)| [p as u32, q as u32]).collect();
    let (a, b, mut y) = (vec![1.0f32; n], vec![2.0f32; n], vec![3.0f32; n]);
    move || {
        for ([p, q], y) in table.iter().zip(&mut y) {
            // SAFETY: the table holds numbers below n.
            *y = unsafe { *a.get_unchecked(*p as usize) + *b.get_unchecked(*q as usize) + 1.0 };
        }
        std::hint::black_box(&y);
    }
}

#[inline(never)]
fn memcpy_plan(plan: &[(u32, u32, u32)], from: &[u8], to: &mut [u8]) {
    for &(s, d, n) in plan {
        // SAFETY: segments lie in blocks of the size that `all` makes.
        unsafe {
            std::ptr::copy_nonoverlapping(from.as_ptr().add(s as usize), to.as_mut_ptr().add(d as usize), n as usize)
        };
    }
}

#[inline(never)]
fn constant<const N: usize>(list: &[Segment], from: &[u8], to: &mut [u8]) {
    for s in list {
        // SAFETY: segments lie in blocks of the size that `all` makes.
        unsafe {
            let (s, d) = (from.as_ptr().add(s.from as usize), to.as_mut_ptr().add(s.to as usize));
            d.cast::<[u8; N]>().write_unaligned(s.cast::<[u8; N]>().read_unaligned());
        }
    }
}

/// Sixteen segments, each `2 * N` bytes after the one before.
#[inline(never)]
fn strided<const N: usize>(runs: &[Segment], from: &[u8], to: &mut [u8]) {
    for run in runs {
        for k in 0..16 {
            // SAFETY: segments lie in blocks of the size that `all` makes.
            unsafe {
                let s = from.as_ptr().add(run.from as usize + 2 * N * k);
                let d = to.as_mut_ptr().add(run.to as usize + 2 * N * k);
                d.cast::<[u8; N]>().write_unaligned(s.cast::<[u8; N]>().read_unaligned());
            }
        }
    }
}

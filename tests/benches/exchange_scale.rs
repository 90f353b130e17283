//! What scheduling one exchange costs: patterns of single words over 1,472 tiles, at 10^4, 10^5 and 10^6 receipts.
//!
//! `cargo bench -p girder-tests --bench exchange_scale [-- SUBSTRING]` prints for each pattern the time per receipt,
//! and the ratio of the cycles to a lower bound. The last line is the worst ratio of the time of a receipt at 10^6
//! receipts to that at 10^4. Time is processor time, summed over all threads.
//!
//! Invariant: the patterns are made here and depend on nothing but their size.

// With the memory that the command has.
use girder_ir::plan::{Grouping, Loc, Object, Phase, Transfer};
use girder_passes::schedule_exchange::{achieved_over_bound, schedule};
use girder_tests as _;
use std::collections::BTreeMap;
use std::time::Duration;

const TILES: u32 = 1472;

/// Numbers in a fixed order that looks random.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, n: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (((self.0 >> 33) * n as u64) >> 31) as u32
    }

    /// A number below `n`, small ones more often: the square of one that is even.
    fn skewed(&mut self, n: u32) -> u32 {
        let k = self.roll(1 << 15) as u64;
        ((k * k * n as u64) >> 30) as u32
    }
}

/// Of each word, who asks for it: words are spread over the tiles in order, `words` on each.
type Users = BTreeMap<(u32, u32), Vec<u32>>;

fn users(receipts: u32, words: u32, mut ask: impl FnMut(&mut Dice, u32) -> (u32, u32)) -> Users {
    let (mut users, mut dice) = (Users::new(), Dice(1));
    for k in 0..receipts {
        let (word, receiver) = ask(&mut dice, k);
        users.entry((word / words.max(1) % TILES, word)).or_default().push(receiver % TILES);
    }
    users
}

/// The name of a pattern and who asks for what at some number of receipts.
type Pattern = (&'static str, fn(u32) -> Users);

const PATTERNS: [Pattern; 9] = [
    // Each tile sends and receives the same number of words.
    ("balanced on both sides", |n| users(n, n / TILES + 1, |_, k| (k, k % TILES * 7919 + k / TILES * 31))),
    ("each word to one tile", |n| users(n, n / TILES + 1, |dice, k| (k, dice.roll(TILES)))),
    ("each word to three tiles", |n| users(n, n / 3 / TILES + 1, |dice, _| (dice.roll(n / 3), dice.roll(TILES)))),
    ("few words to many tiles", |n| users(n, n / 50 / TILES + 1, |dice, _| (dice.roll(n / 50), dice.roll(TILES)))),
    ("from a few tiles", |n| users(n, n / 100, |dice, _| (dice.roll(n), dice.roll(TILES)))),
    ("to a few tiles", |n| users(n, n / TILES + 1, |dice, _| (dice.roll(n), dice.roll(20)))),
    ("one receiver in ten", |n| {
        users(n, n / TILES + 1, |dice, k| (dice.roll(n), if k % 10 == 0 { 0 } else { dice.roll(TILES) }))
    }),
    ("skewed on both sides", |n| users(n, n / TILES + 1, |dice, _| (dice.skewed(n), dice.skewed(TILES)))),
    ("a word in ten hot", |n| {
        users(n, n / 3 / TILES + 1, |dice, k| {
            (if k % 10 == 0 { dice.roll(n / 10_000 + 1) } else { dice.roll(n / 3) }, dice.roll(TILES))
        })
    }),
];

/// A transfer for each word, to each tile once.
fn phase(users: Users) -> Phase {
    let loc = |tile: u32, word: u32| Loc { tile, object: Object::Buffer(0), offset: 4 * word };
    let (mut transfers, mut groups) = (vec![], Grouping::default());
    for ((from, word), mut to) in users {
        to.sort_unstable();
        to.dedup();
        to.retain(|&tile| tile != from);
        if !to.is_empty() {
            let to: Vec<Loc> = to.into_iter().map(|tile| loc(tile, word)).collect();
            transfers.push(Transfer { from: loc(from, word), to: groups.to(&to), words: 1 });
        }
    }
    Phase { transfers, groups: groups.into_groups(), ..Phase::default() }
}

/// Time that this process has had on processors.
fn processor_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let ticks: u64 = after_name.split(' ').skip(12).take(2).filter_map(|t| t.parse::<u64>().ok()).sum();
    Duration::from_millis(10 * ticks)
}

fn main() {
    let wanted = std::env::args().skip(1).find(|a| a != "--bench").unwrap_or_default();
    let machine = girder_machine::builtin("gc200").expect("a machine that is built in");
    let mut worst: f64 = 0.0;
    for (name, users) in PATTERNS.into_iter().filter(|p| p.0.contains(wanted.as_str())) {
        print!("{name:<26}");
        let mut first = f64::NAN;
        for size in [10_000, 100_000, 1_000_000] {
            let phase = phase(users(size));
            let receipts: usize = phase.transfers.iter().map(|t| phase.receivers(t).len()).sum();
            // Short runs are repeated until the clock, which ticks a hundred times a second, can tell.
            let (before, mut runs) = (processor_time(), 0);
            let mut ratio = f64::NAN;
            while runs == 0 || processor_time() - before < Duration::from_millis(200) {
                let found = schedule(&phase, &machine).expect("less than 2^32 cycles");
                ratio = achieved_over_bound(&phase, &found, &machine);
                runs += 1;
            }
            let each = (processor_time() - before).as_secs_f64() * 1e9 / (runs as f64 * receipts as f64);
            first = if first.is_nan() { each } else { first };
            worst = worst.max(each / first);
            print!("{each:>10.0} ns ({ratio:.3})");
        }
        println!();
    }
    println!("\nworst growth of the time per receipt: {worst:.1}");
}

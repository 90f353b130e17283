//! Mutated programs: texts that are nearly programs, made from the programs of the repository.
//!
//! A text is cut into words. A mutation deletes, repeats, swaps or replaces some of them, with words of other programs
//! or with numbers at which something ends.
//!
//! Invariant: the texts depend on the corpus and the seed alone.

use crate::files;
use crate::random::Random;

/// Numbers at which something ends: types, limits, machines.
const NUMBERS: [&str; 12] =
    ["0", "1", "2", "3", "16", "64", "1472", "4096", "65536", "2147483648", "4294967295", "9223372036854775807"];
/// Programs that are longer would take most of the time.
const LONGEST: usize = 4000;

/// The programs of the repository, in words.
pub struct Corpus {
    programs: Vec<Vec<String>>,
}

impl Corpus {
    /// Reads the programs of some folders of the repository, without those that are long.
    pub fn read(folders: &[&str]) -> Corpus {
        let paths = folders.iter().flat_map(|folder| files::under(folder, ".gir"));
        let texts = paths.map(files::text).filter(|text| text.len() <= LONGEST);
        Corpus { programs: texts.map(|text| words(&text)).collect() }
    }

    /// Returns the number of programs.
    pub fn len(&self) -> usize {
        self.programs.len()
    }

    /// Returns whether there is no program.
    pub fn is_empty(&self) -> bool {
        self.programs.is_empty()
    }

    /// Returns a mutated program.
    pub fn mutant(&self, seed: u64) -> String {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x2545_f491_4f6c_dd1d);
        let mut text = self.programs[random.below(self.len())].clone();
        for _ in 0..=random.below(4) {
            self.mutate(&mut text, &mut random);
        }
        text.concat()
    }

    fn mutate(&self, text: &mut Vec<String>, random: &mut Random) {
        if text.is_empty() {
            return;
        }
        let at = random.below(text.len());
        let range = at..(at + 1 + random.below(12)).min(text.len());
        let other = &self.programs[random.below(self.len())];
        match random.below(8) {
            0 => _ = text.drain(range),
            1 => {
                let again = text[range.clone()].to_vec();
                text.splice(range.end..range.end, again);
            }
            2 => {
                let with = random.below(text.len());
                text.swap(at, with);
            }
            3 | 4 => {
                let numbers: Vec<usize> = (0..text.len()).filter(|&k| is_number(&text[k])).collect();
                if !numbers.is_empty() {
                    text[numbers[random.below(numbers.len())]] = NUMBERS[random.below(NUMBERS.len())].into();
                }
            }
            // A statement, or a part of one, of another program.
            5 | 6 if !other.is_empty() => {
                let from = random.below(other.len());
                let to = (from + 1 + random.below(30)).min(other.len());
                text.splice(range, other[from..to].iter().cloned());
            }
            // A word of the text in the place of another: names of the wrong kind.
            _ => text[at] = text[random.below(text.len())].clone(),
        }
    }
}

fn is_number(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit())
}

/// Cuts a text into names and numbers, white space, and single other characters.
fn words(text: &str) -> Vec<String> {
    let kind = |c: char| if c.is_alphanumeric() || c == '_' { 1 } else { 2 * i32::from(c.is_whitespace()) };
    let mut words: Vec<String> = vec![];
    let mut last = 0;
    for c in text.chars() {
        match words.last_mut() {
            Some(word) if last == kind(c) && last != 0 => word.push(c),
            _ => words.push(c.into()),
        }
        last = kind(c);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_make_the_text() {
        let text = "var x: f32[4] = 0.5; // é\n";
        assert_eq!(words(text).concat(), text);
        assert_eq!(words("x1 += 23;"), ["x1", " ", "+", "=", " ", "23", ";"]);
    }
}

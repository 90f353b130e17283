//! The trait that every pass implements, and a pass as a row of the registry.
//!
//! Invariant: a row of the registry is made from one [`Pass`], so its name, stages and functions belong together.

use crate::PassContext;
use crate::stage::{AnyStage, Stage, StageData};
use girder_source::Result;

/// The result of a verifier; an error describes the first violation.
pub type Verdict = std::result::Result<(), String>;

/// A function from one stage to the next, with the verifier of its result.
pub trait Pass {
    /// The flag, test folder and row of timings.
    const NAME: &'static str;
    /// What the pass does, as `girder passes` prints it.
    const SENTENCE: &'static str;
    /// Whether a compilation may leave the pass out: results are the same without it, and no later pass needs it.
    const OPTIONAL: bool = false;
    /// The stage that the pass takes.
    type From: StageData;
    /// The stage that the pass makes.
    type To: StageData;

    /// Runs the pass.
    ///
    /// # Errors
    /// The pass has pushed an error to the diagnostics.
    fn run(input: Self::From, cx: &mut PassContext) -> Result<Self::To>;

    /// Checks the properties that the pass establishes.
    fn verify(made: &Self::To, cx: &PassContext) -> Verdict;

    /// Checks a result that this compiler has just made, in builds with debug assertions. It may leave out slow checks.
    fn verify_own(made: &Self::To, cx: &PassContext) -> Verdict {
        Self::verify(made, cx)
    }

    /// Checks a stage that was read from text, on its own or inside a later stage `text`, and adds the parts that the
    /// text does not contain.
    ///
    /// # Errors
    /// `resume::bad_table` if the verifier rejects the stage.
    fn admit(read: &mut Self::To, _text: Stage, cx: &mut PassContext) -> Result<()> {
        let verdict = Self::verify(read, cx);
        cx.accepted(Self::NAME, verdict)
    }
}

/// A row of the registry: a [`Pass`] as a value.
#[derive(Clone, Copy, Debug)]
pub struct PassEntry {
    /// See [`Pass::NAME`].
    pub name: &'static str,
    /// See [`Pass::SENTENCE`].
    pub sentence: &'static str,
    /// See [`Pass::OPTIONAL`].
    pub optional: bool,
    /// The stage that the pass takes.
    pub from: Stage,
    /// The stage that the pass makes.
    pub to: Stage,
    run: fn(AnyStage, &mut PassContext) -> Result<AnyStage>,
    admit: fn(&mut AnyStage, &mut PassContext) -> Result<()>,
}

impl PassEntry {
    /// Returns the row of a pass.
    pub const fn of<P: Pass>() -> PassEntry {
        PassEntry {
            name: P::NAME,
            sentence: P::SENTENCE,
            optional: P::OPTIONAL,
            from: P::From::STAGE,
            to: P::To::STAGE,
            run: run::<P>,
            admit: admit::<P>,
        }
    }

    /// Runs the pass on a compilation at stage `from`. With debug assertions, the result is verified.
    ///
    /// # Errors
    /// The errors of the pass.
    pub fn run(&self, at: AnyStage, cx: &mut PassContext) -> Result<AnyStage> {
        (self.run)(at, cx)
    }

    /// Checks the table of the pass in a compilation that was read from text and is at stage `to` or later.
    ///
    /// # Errors
    /// The table does not hold.
    pub fn admit(&self, read: &mut AnyStage, cx: &mut PassContext) -> Result<()> {
        (self.admit)(read, cx)
    }
}

fn run<P: Pass>(at: AnyStage, cx: &mut PassContext) -> Result<AnyStage> {
    let stage = at.stage();
    let Ok(input) = P::From::try_from(at) else {
        unreachable!("`{}` takes the stage {}, not {}", P::NAME, P::From::STAGE.name(), stage.name())
    };
    let made = cx.time(P::NAME, |cx| P::run(input, cx))?;
    if cfg!(debug_assertions) {
        let verdict = P::verify_own(&made, cx);
        cx.verified(P::NAME, verdict)?;
    }
    Ok(made.into())
}

fn admit<P: Pass>(read: &mut AnyStage, cx: &mut PassContext) -> Result<()> {
    let text = read.stage();
    match P::To::within(read) {
        Some(made) => cx.time(P::NAME, |cx| P::admit(made, text, cx)),
        None => unreachable!("the table of `{}` is read before it is admitted", P::NAME),
    }
}

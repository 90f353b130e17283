//! Branches and loops backwards.
//!
//! The reverse of a branch is a branch on the same condition; that of a loop is a loop with the iterations in falling
//! order. What lives outside them has an adjoint of its own variable, to which every arm and iteration adds.
//!
//! Invariant: a reversed body leaves no hole in an adjoint that outlives it.

use super::order::{Inside, Moment};
use super::record::tape_of;
use super::state::{LoopContext, ReverseWalk};
use super::tape::{Entry, EntryKind, LoopAttributes, Tape, What, each_touched, each_write};
use crate::elaborator::{Body, Elaborator, NodeKind, Runs};
use crate::value::Tensor;
use girder_ir::graph::VarClass;
use girder_ir::ids::VarId;
use girder_ir::types::ElemType;
use girder_source::{Result, Span};
use std::ops::Range;
use std::rc::Rc;

impl Elaborator<'_> {
    /// Returns the variables that live outside a step, are active and occur in its bodies.
    fn outside(&self, w: &ReverseWalk, e: &Entry, bodies: &[Rc<Tape>]) -> Vec<VarId> {
        let mut vars = vec![];
        bodies.iter().for_each(|t| each_touched(t, &mut |v| vars.push(v)));
        vars.sort_unstable();
        vars.dedup();
        vars.retain(|&v| self.graph.vars[v].ty.is_float() && w.active.has(v) && !self.is_local(v, &e.during));
        vars
    }

    /// Returns whether a variable is a temporary that is first written during some time.
    pub(super) fn is_local(&self, var: VarId, during: &Range<Moment>) -> bool {
        self.graph.vars[var].class == VarClass::Temp && self.recorder.made(var).is_some_and(|at| during.contains(&at))
    }

    fn writes_reached(&self, w: &ReverseWalk, bodies: &[Rc<Tape>]) -> bool {
        let mut reached = false;
        bodies.iter().for_each(|t| each_write(t, &mut |v| reached |= w.adjoints.has(v)));
        reached
    }

    /// Forgets the adjoints of variables that live inside a step.
    fn forget_locals(&mut self, w: &mut ReverseWalk, e: &Entry, bodies: &[Rc<Tape>]) {
        let mut vars = vec![];
        bodies.iter().for_each(|t| each_touched(t, &mut |v| vars.push(v)));
        for v in vars {
            if self.is_local(v, &e.during) {
                w.adjoints.forget(v);
            }
        }
    }

    /// Gives the adjoints of outside variables variables of their own, without holes.
    fn own_all(&mut self, w: &mut ReverseWalk, vars: &[VarId], span: Span) -> Result<()> {
        for &v in vars {
            self.own_adjoint(&mut w.adjoints, v, span)?;
            self.fill_holes(&mut w.adjoints, v, None, span)?;
        }
        Ok(())
    }

    fn fill_all(&mut self, w: &mut ReverseWalk, vars: &[VarId], span: Span) -> Result<()> {
        vars.iter().try_for_each(|&v| self.fill_holes(&mut w.adjoints, v, None, span))
    }

    pub(super) fn reverse_branch(
        &mut self,
        w: &mut ReverseWalk,
        e: &Entry,
        on: &Tensor,
        keys: &[Vec<(i64, i64)>],
        arms: &[Rc<Tape>],
    ) -> Result<()> {
        if !self.writes_reached(w, arms) {
            return Ok(());
        }
        let vars = self.outside(w, e, arms);
        self.own_all(w, &vars, e.span)?;
        let on = self.need(w, on, e, false)?;
        let on = self.one_region(on, e.span)?;
        let (_, begin) = self.begin();
        let mut bodies = vec![];
        for (arm, tape) in arms.iter().enumerate() {
            self.emission.open_under_run_time(Runs::OrNot);
            let apart = moments_of_others(arms, arm);
            w.path.push(Inside { during: e.during.clone(), arm, is_loop: false, apart });
            let done = self.walk(w, tape).and_then(|()| self.fill_all(w, &vars, e.span));
            w.path.pop();
            bodies.push(self.emission.close_under_run_time());
            done?;
            // Adjoints of another arm's locals may have been made by steps after the branch.
            self.forget_locals(w, e, std::slice::from_ref(tape));
        }
        if bodies.iter().all(|b| b.nodes.is_empty()) {
            return Ok(());
        }
        let tapes: Vec<Rc<Tape>> = bodies.iter().map(tape_of).collect();
        let record = EntryKind::Branch { on: on.clone(), keys: keys.to_vec(), arms: tapes };
        let last: Body = bodies.pop().unwrap_or_default();
        let kind = match (keys.is_empty(), bodies.pop()) {
            (true, Some(then)) => NodeKind::If { cond: on.view, then, els: last },
            (_, more) => {
                bodies.extend(more);
                NodeKind::Switch { on: on.view, cases: keys.iter().cloned().zip(bodies).collect(), default: last }
            }
        };
        self.push(kind, e.span)?;
        self.record(begin, record, e.span);
        Ok(())
    }

    /// Reverses bodies that do not depend on one another. Their reverse bodies are independent too if no two of the
    /// bodies touch one variable outside them; otherwise they are reversed one after the other.
    pub(super) fn reverse_par(&mut self, w: &mut ReverseWalk, e: &Entry, arms: &[Rc<Tape>]) -> Result<()> {
        let reached = arms.iter().filter(|tape| self.writes_reached(w, std::slice::from_ref(*tape))).count();
        let mut touched: Vec<VarId> =
            arms.iter().flat_map(|tape| self.outside(w, e, std::slice::from_ref(tape))).collect();
        touched.sort_unstable();
        let apart = reached > 1 && touched.windows(2).all(|pair| pair[0] != pair[1]);
        let (_, begin) = self.begin();
        let mut bodies = vec![];
        for (arm, tape) in arms.iter().enumerate().rev() {
            w.path.push(Inside { during: e.during.clone(), arm, is_loop: false, apart: Rc::default() });
            let done = match apart {
                true => {
                    self.emission.open_under_run_time(Runs::OrNot);
                    let done = self.walk(w, tape);
                    bodies.push(self.emission.close_under_run_time());
                    done
                }
                false => self.walk(w, tape),
            };
            w.path.pop();
            done?;
        }
        if apart {
            let record = EntryKind::Par(bodies.iter().map(tape_of).collect());
            self.push(NodeKind::Par(bodies), e.span)?;
            self.record(begin, record, e.span);
        }
        Ok(())
    }

    pub(super) fn reverse_repeat(
        &mut self,
        w: &mut ReverseWalk,
        e: &Entry,
        count: u64,
        index: Option<(VarId, i32, i32)>,
        body: &Rc<Tape>,
        attributes: LoopAttributes,
    ) -> Result<()> {
        let bodies = std::slice::from_ref(body);
        if count == 0 || !self.writes_reached(w, bodies) {
            return Ok(());
        }
        let vars = self.outside(w, e, bodies);
        self.own_all(w, &vars, e.span)?;
        let begin = self.moment();
        let local = self.temporary("iteration", ElemType::I32, &[], e.span)?;
        let var = local.view.parts.first().map_or(VarId::from_u32(0), |p| p.var);
        self.emission.open_under_run_time(Runs::AnyNumber);
        w.path.push(Inside { during: e.during.clone(), arm: 0, is_loop: true, apart: Rc::default() });
        let path = w.path.clone();
        let depth = self.emission.depth() - 1;
        let (during, rows) = (e.during.clone(), vec![]);
        let (forward, backward, forward_index) = (None, None, None);
        w.loops.push(LoopContext {
            during,
            path,
            body: body.clone(),
            count,
            index,
            local,
            depth,
            forward,
            backward,
            forward_index,
            rows,
            offload: attributes.offload,
            carried: vec![],
        });
        let done = match attributes.recompute {
            true => self.reverse_iteration(w, e, body),
            false => self.walk(w, body),
        };
        let done = done.and_then(|()| self.fill_all(w, &vars, e.span)).and_then(|()| self.carry_back(w, e.span));
        w.loops.pop();
        w.path.pop();
        let reversed = self.emission.close_under_run_time();
        done?;
        self.forget_locals(w, e, bodies);
        let kind = NodeKind::Repeat { count, index: Some((var, count as i32 - 1, -1)), body: reversed };
        self.push(kind, e.span)?;
        let what = What::ReverseLoop;
        let mut reads = vars.clone();
        // What an iteration makes for itself is kept in rows: the reverse loop does not read it.
        each_touched(body, &mut |v| reads.extend((!self.is_local(v, &e.during)).then_some(v)));
        let writes = vars.iter().filter_map(|&v| w.adjoints.own(v)).collect();
        self.record(begin, EntryKind::Opaque { what, reads, writes }, e.span);
        Ok(())
    }
}

/// Returns the moments of the entries of all arms but one.
fn moments_of_others(arms: &[Rc<Tape>], arm: usize) -> Rc<[Range<Moment>]> {
    let others = arms.iter().enumerate().filter(|(k, _)| *k != arm);
    others.flat_map(|(_, tape)| tape.iter().map(|e| e.during.clone())).collect()
}

//! Promotion changes exactly the exposed temporaries, and warns once for each.

use super::*;
use crate::build::{Build, Tree, machine};
use girder_ir::view::View;
use girder_source::{Diagnostics, Session};

#[test]
fn an_exposed_temporary_becomes_persistent_and_draws_a_warning() {
    let mut b = Build::new();
    let p = b.var("p", VarClass::Var, &[4], None);
    let (t, u) = (b.temp("main.t", &[4]), b.temp("main.u", &[4]));
    let steps = vec![b.copy_step(&u, &p), b.copy_step(&p, &t)];
    b.program("main", true, &Tree::Seq(steps));
    let (machine, session, mut diagnostics) = (machine(), Session::default(), Diagnostics::default());
    let mut cx = PassContext::new(&machine, &session, &mut diagnostics);
    let graph = PromoteTemporaries::run(b.graph, &mut cx).unwrap();
    PromoteTemporaries::verify(&graph, &cx).unwrap();
    let classes: Vec<VarClass> = graph.vars.values().map(|v| v.class).collect();
    assert_eq!(classes, [VarClass::Var, VarClass::Var, VarClass::Temp]);
    let reported: Vec<_> = diagnostics.iter().map(|d| (d.code, d.message.as_str())).collect();
    assert_eq!(reported, [("memory::uninitialised_read", "`main.t` may be read before it is written")]);
    assert!(!diagnostics.has_errors());
}

/// `undef(t); t <- p; print(t); undef(t); p <- t; undef(p);`
#[test]
fn an_undef_is_unread_if_each_path_writes_before_it_reads() {
    let mut b = Build::new();
    let p = b.var("p", VarClass::Var, &[4], None);
    let t = b.temp("main.t", &[4]);
    let undef =
        |what: &View| Tree::Effect(Effect::Undef { what: what.clone(), until_written: UntilWritten::MayBeRead });
    let print = |value: &View| Tree::Effect(Effect::Print { label: "".into(), value: value.clone() });
    let steps = vec![undef(&t), b.copy_step(&t, &p), print(&t), undef(&t), b.copy_step(&p, &t), undef(&p)];
    b.program("main", true, &Tree::Seq(steps));
    let (machine, session, mut diagnostics) = (machine(), Session::default(), Diagnostics::default());
    let mut cx = PassContext::new(&machine, &session, &mut diagnostics);
    let graph = PromoteTemporaries::run(b.graph, &mut cx).unwrap();
    let found = graph.steps.values().filter_map(|step| match &step.kind {
        StepKind::Effect(Effect::Undef { until_written, .. }) => Some(*until_written),
        _ => None,
    });
    // The second one is read, and the host may read a persistent variable.
    let (unread, may_be_read) = (UntilWritten::Unread, UntilWritten::MayBeRead);
    assert_eq!(found.collect::<Vec<_>>(), [unread, may_be_read, may_be_read]);
    let reported: Vec<_> = diagnostics.iter().map(|d| d.code).collect();
    assert_eq!(reported, ["memory::read_after_undef"]);
}

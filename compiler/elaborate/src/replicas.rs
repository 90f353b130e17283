//! Replicas: the number of each, copies between them, and promises that they agree.
//!
//! Invariant: what a replica copies, and to whom, is known before the program runs; only the elements depend on it.

use crate::copies::{CopyRow, RowSource};
use crate::elaborator::{Elaborator, NodeKind};
use crate::value::{Given, Tensor, Value};
use girder_ir::family::ReplicaPair;
use girder_ir::graph::{Init, VarClass};
use girder_ir::program::Effect;
use girder_ir::types::{ElemType, Scalar};
use girder_ir::view::View;
use girder_source::{Result, Span};
use girder_syntax::ast::{self, Arg, ExprId, ExprKind};

impl Elaborator<'_> {
    /// Returns the number of replicas that run the program.
    pub fn replicas(&self) -> u32 {
        self.machine.partition.replicas
    }

    /// Returns the number of the replica: a scalar `i32`.
    pub fn replica_index(&mut self, span: Span) -> Result<Tensor> {
        if self.replicas() == 1 {
            return self.constant(Scalar::int(ElemType::I32, 0).unwrap_or(Scalar::zero(ElemType::I32)), span);
        }
        let var = match self.entities.replica_index {
            Some(var) => var,
            None => {
                let name = self.entities.vars.unique(REPLICA_INDEX.into());
                let var = self.add_var(name, VarClass::Const, ElemType::I32, &[], Default::default(), span)?;
                self.graph.vars[var].init = Some(Init::ReplicaIndex);
                self.entities.replica_index = Some(var);
                var
            }
        };
        Ok(Tensor { view: View::whole(var, &[]), ty: ElemType::I32 })
    }

    /// Returns whether an initial value is the number of the replica, as printed text has it.
    pub fn is_replica_index(&self, v: &ast::VarDecl) -> bool {
        let named = |e: ExprId| matches!(&self.tree().exprs[e].kind, ExprKind::Name(n) if n == REPLICA_INDEX);
        v.init.is_some_and(named) && v.name.dotted() == REPLICA_INDEX
    }

    /// Returns the elements of a row of a copy, and which replica's they are.
    pub fn of_replica(&mut self, e: ExprId) -> Result<(Option<u32>, ExprId)> {
        let Some([replica, view]) = self.call_of(e, "at_replica") else { return Ok((None, e)) };
        let span = self.tree().exprs[replica].span;
        match self.expr(replica)? {
            Value::Int(k) if (0..i64::from(self.replicas())).contains(&k) => Ok((Some(k as u32), view)),
            Value::Int(k) => {
                let all = self.replicas();
                let message = format!("there is no replica {k}: the program runs on {all}, numbered from 0");
                let help = "`replicas` is their number, and `--replicas R` sets it";
                Err(self.error_help("replica::index", span, message, help))
            }
            other => Err(self.expected("a static integer", &other, span)),
        }
    }

    /// Returns the promise of a row that printed text has, `uniform(x)`, and its elements.
    pub fn of_uniform(&mut self, e: ExprId) -> (bool, ExprId) {
        match self.call_of(e, "uniform") {
            Some([x]) => (true, x),
            None => (false, e),
        }
    }

    /// Returns the arguments of a call of a built-in function.
    fn call_of<const N: usize>(&self, e: ExprId, function: &str) -> Option<[ExprId; N]> {
        let tree = self.tree();
        let ExprKind::Call { callee, args } = &tree.exprs[e].kind else { return None };
        let ExprKind::Name(name) = &tree.exprs[*callee].kind else { return None };
        if name != function || self.scopes.local(name).is_some() {
            return None;
        }
        let plain = |a: &Arg| a.name.is_none().then_some(a.value);
        args.iter().map(plain).collect::<Option<Vec<_>>>()?.try_into().ok()
    }

    /// Returns the source of a row between two replicas, or inside one.
    pub fn row_source(&mut self, receiver: Option<u32>, sender: Option<u32>, span: Span) -> Result<RowSource> {
        match (receiver, sender) {
            (None, None) => Ok(RowSource::Own),
            (Some(receiver), Some(sender)) => Ok(RowSource::Pair(ReplicaPair { receiver, sender })),
            _ => {
                let message = "only one side of this row says which replica";
                let help = "write `at_replica(r, y) <- at_replica(s, x);`: replica `r` receives from replica `s`";
                Err(self.error_help("replica::row", span, message, help))
            }
        }
    }

    /// Reports `at_replica` outside the rows of a copy.
    pub fn at_replica_outside(&mut self, span: Span) -> girder_source::Failed {
        let message = "`at_replica` stands only in the rows of a copy";
        let help = "write `copy name { at_replica(r, y) <- at_replica(s, x) for r in …; }`";
        self.error_help("replica::row", span, message, help)
    }

    /// Elaborates `agree(x);`: the variables of `x` are equal in all replicas.
    pub fn agree(&mut self, given: Vec<Given>, span: Span) -> Result<Value> {
        let [x] = self.required("agree", ["x"], given, span)?;
        let Value::Tensor(x) = x.value else { return Err(self.expected("a tensor", &x.value, x.span)) };
        if self.replicas() > 1 {
            for var in x.view.vars() {
                let what = View::whole(var, &self.graph.vars[var].shape);
                self.push(NodeKind::Effect(Effect::Agree { what }), span)?;
            }
        }
        Ok(Value::Unit)
    }

    /// Elaborates `uniform(x)`: a fresh temporary with the elements of `x`, which are equal in all replicas.
    pub fn uniform(&mut self, given: Vec<Given>, span: Span) -> Result<Value> {
        let [x] = self.required("uniform", ["x"], given, span)?;
        let Value::Tensor(x) = x.value else { return Err(self.expected("a tensor", &x.value, x.span)) };
        if self.replicas() == 1 {
            return Ok(Value::Tensor(x));
        }
        let t = self.temporary("uniform", x.ty, &x.view.shape(), span)?;
        if !x.view.is_empty() {
            let row = CopyRow::single(t.view.clone(), x.view.clone(), span);
            self.push_copy("uniform", vec![row.from(RowSource::Uniform)], span)?;
        }
        Ok(t.into())
    }
}

/// The name of the number of the replica.
pub const REPLICA_INDEX: &str = "replica_index";

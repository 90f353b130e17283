//! How the operations of typed codelets are written.

use girder_ir::codelet::{BinaryOp, ReduceOp, UnaryOp};
use girder_syntax::ast;

/// How an operation is written.
pub enum Spelling<T> {
    /// As an operator.
    Operator(T),
    /// As a call of a function that is built in.
    Function(&'static str),
}

/// Returns how an operation of one operand is written.
pub fn unary(op: UnaryOp) -> Spelling<ast::UnaryOp> {
    Spelling::Function(match op {
        UnaryOp::Neg => return Spelling::Operator(ast::UnaryOp::Neg),
        UnaryOp::Not => return Spelling::Operator(ast::UnaryOp::Not),
        UnaryOp::Abs => "abs",
        UnaryOp::Floor => "floor",
        UnaryOp::Ceil => "ceil",
        UnaryOp::Round => "round",
        UnaryOp::Trunc => "trunc",
        UnaryOp::Sqrt => "sqrt",
        UnaryOp::Popcount => "popcount",
        UnaryOp::Clz => "clz",
    })
}

/// Returns how an operation of two operands is written.
pub fn binary(op: BinaryOp) -> Spelling<ast::BinaryOp> {
    use ast::BinaryOp as A;
    Spelling::Operator(match op {
        BinaryOp::Add => A::Add,
        BinaryOp::Sub => A::Sub,
        BinaryOp::Mul => A::Mul,
        BinaryOp::Div => A::Div,
        BinaryOp::Rem => A::Rem,
        BinaryOp::Min => return Spelling::Function("min"),
        BinaryOp::Max => return Spelling::Function("max"),
        BinaryOp::And => A::BitAnd,
        BinaryOp::Or => A::BitOr,
        BinaryOp::Xor => A::BitXor,
        BinaryOp::Shl => A::Shl,
        BinaryOp::Shr => A::Shr,
        BinaryOp::Eq => A::Eq,
        BinaryOp::Ne => A::Ne,
        BinaryOp::Lt => A::Lt,
        BinaryOp::Le => A::Le,
        BinaryOp::Gt => A::Gt,
        BinaryOp::Ge => A::Ge,
    })
}

/// Returns the name of a reduction.
pub fn reduction(op: ReduceOp) -> &'static str {
    match op {
        ReduceOp::Sum => "sum",
        ReduceOp::Product => "product",
        ReduceOp::Min => "min",
        ReduceOp::Max => "max",
        ReduceOp::Any => "any",
        ReduceOp::All => "all",
        ReduceOp::ArgMin => "argmin",
        ReduceOp::ArgMax => "argmax",
    }
}

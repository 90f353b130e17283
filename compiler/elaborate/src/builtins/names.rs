//! The names of built-in functions, for name resolution.

/// The built-in functions outside codelets.
pub const NAMES: [&str; 37] = [
    "tile",
    "ipu",
    "linear",
    "load",
    "bytes",
    "read",
    "print",
    "abort",
    "sync",
    "undef",
    "copy",
    "concat",
    "len",
    "zip",
    "enumerate",
    "leaves",
    "int",
    "float",
    "string",
    "div_ceil",
    "min",
    "max",
    "abs",
    "floor",
    "ceil",
    "round",
    "sqrt",
    "exp",
    "log",
    "log2",
    "pow",
    "params",
    "assert",
    "list",
    "reversed",
    "zeros",
    "cycles",
];

/// Functions of the prelude that also apply to static numbers.
pub const STATIC: [&str; 15] = [
    "sqrt", "exp", "log", "log2", "tanh", "sin", "cos", "relu", "square", "pow", "abs", "floor", "ceil", "round",
    "trunc",
];

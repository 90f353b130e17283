//! The names of built-in functions, for whoever looks names up.

/// Functions that the language builds in outside codelets.
pub const NAMES: [&str; 36] = [
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
];

/// Functions of the prelude that static numbers have too.
pub const STATIC: [&str; 14] =
    ["sqrt", "exp", "log", "tanh", "sin", "cos", "relu", "square", "pow", "abs", "floor", "ceil", "round", "trunc"];

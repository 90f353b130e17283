//! Errors of an engine and of a run.
//!
//! Invariant: a [`RunError`] is the same in every mode and on any number of threads, except [`RunError::Cancelled`],
//! which depends on the time of the cancellation, and [`RunError::Interpreted`], which is of one mode.

use girder_ir::codelet::Check;
use girder_ir::ids::FamilyId;
use girder_source::{Diagnostic, Span};
use smol_str::SmolStr;

/// The reason why an engine rejects a request.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum EngineError {
    /// The memory of the mode exceeds the limit or the memory of the host.
    #[error("this run needs {needed} bytes of host memory, but the limit `host_bytes` is {limit}")]
    HostMemory {
        /// Bytes that are needed.
        needed: u64,
        /// Bytes that are allowed.
        limit: u64,
    },
    /// The host may not name a temporary.
    #[error("`{0}` is a temporary; the host may only name persistent variables")]
    Temporary(SmolStr),
    /// A `const` cannot be set.
    #[error("`{0}` is a constant and cannot be set")]
    Constant(SmolStr),
    /// The number of bytes is not that of the variable.
    #[error("`{name}` has {expected} bytes, but {found} were given")]
    WrongSize {
        /// The variable.
        name: SmolStr,
        /// Bytes of all its elements.
        expected: u64,
        /// Bytes that were given.
        found: u64,
    },
    /// Variables have no specified value after a failed run.
    #[error("the last run failed, so the variables have no specified values")]
    AfterFailure,
    /// The executable was compiled for other modes.
    #[error("the executable was not compiled for this mode")]
    NotPrepared,
    /// The program can only be called by other programs.
    #[error("`{0}` is called by programs and cannot be run by itself")]
    NotEntry(SmolStr),
    /// The code generator rejects a codelet, with this message.
    #[error("{0}")]
    Code(String),
    /// Inconsistent tables: a bug of the compiler.
    #[error("internal error in the engine: {0}")]
    Internal(String),
}

impl EngineError {
    /// Returns the error as a diagnostic without a location.
    pub fn diagnostic(&self) -> Diagnostic {
        let (code, help) = match self {
            EngineError::HostMemory { needed, .. } => {
                ("run::host_memory", Some(format!("raise the limit with `--limit host_bytes={needed}`")))
            }
            EngineError::Temporary(_) => ("run::temporary", Some("declare it with `var` at module level".to_string())),
            EngineError::Constant(_) => ("run::constant", Some("declare it with `var`".to_string())),
            EngineError::WrongSize { .. } => ("run::wrong_size", None),
            EngineError::AfterFailure => ("run::after_failure", None),
            EngineError::NotPrepared => ("run::not_prepared", None),
            EngineError::NotEntry(_) => ("run::not_entry", None),
            EngineError::Code(_) => ("codegen::refused", None),
            EngineError::Internal(_) => ("run::internal", None),
        };
        let d = Diagnostic::error(code, Span::NONE, self.to_string());
        match help {
            Some(text) => d.help(text),
            None => d,
        }
    }
}

/// The reason why a run ended early.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum RunError {
    /// A failed check in a codelet: the first one in the order of steps, families and instances.
    #[error("{}", diagnostic.message)]
    Check {
        /// The family of the vertex.
        family: FamilyId,
        /// The instance.
        instance: u64,
        /// The check that failed.
        check: Check,
        /// The vertex, its tile, the values and the locations.
        diagnostic: Box<Diagnostic>,
    },
    /// Two workers of a `multi` codelet touch one element that one of them writes; only mode `interpret` detects this.
    #[error("{}", diagnostic.message)]
    Workers {
        /// The family of the vertex.
        family: FamilyId,
        /// The instance.
        instance: u64,
        /// The element, the workers and the locations.
        diagnostic: Box<Diagnostic>,
    },
    /// `abort(message, when: c);` with `c` true.
    #[error("the program aborted: {message}")]
    Abort {
        /// Its message.
        message: SmolStr,
        /// The statement.
        span: Span,
    },
    /// A loop of the program, or all of its loops together, ran too many iterations.
    #[error("{} more than {limit} iterations, which is the limit", loops(*all))]
    Iterations {
        /// The limit.
        limit: u64,
        /// Whether the limit is `total_iterations`, for all loops together, instead of `iterations`.
        all: bool,
        /// The loop.
        span: Span,
    },
    /// The vertices of a run in mode `interpret` executed too many statements.
    #[error("the vertices of this run execute more than {limit} statements in mode `interpret`, which is the limit")]
    Interpreted {
        /// The limit.
        limit: u64,
        /// The step that was executing.
        span: Span,
    },
    /// Steps and calls are nested too deeply.
    #[error("steps and calls of the program nest more than {limit} deep")]
    Nesting {
        /// The limit.
        limit: u32,
        /// The step that is too deep.
        span: Span,
    },
    /// The host has no further packet.
    #[error("stream `{stream}` ended before the program stopped reading it")]
    StreamEnded {
        /// Its name.
        stream: SmolStr,
        /// The step that reads.
        span: Span,
        /// The span of the stream's declaration.
        declared: Span,
        /// The number of packets that one read takes: one for each replica that has its own.
        packets: u32,
    },
    /// The host could not serve a stream.
    #[error("stream `{stream}`: {message}")]
    Stream {
        /// Its name.
        stream: SmolStr,
        /// The host's message.
        message: String,
        /// The step.
        span: Span,
    },
    /// A remote buffer has no such row.
    #[error("there is no row {row} of `{name}`, which has {rows}")]
    Row {
        /// The name of the buffer.
        name: SmolStr,
        /// The row.
        row: i64,
        /// The number of its rows.
        rows: u32,
        /// The step.
        span: Span,
    },
    /// One of several replicas failed.
    #[error("replica {replica}: {error}")]
    InReplica {
        /// Its number.
        replica: u32,
        /// The reason.
        error: Box<RunError>,
    },
    /// Replicas do not agree where they have to.
    #[error("{what} differs from replica to replica, but all of them have to take part in what follows")]
    Diverged {
        /// The value on which they have to agree.
        what: &'static str,
        /// The step.
        span: Span,
    },
    /// The session was cancelled.
    #[error("the run was cancelled")]
    Cancelled,
    /// The engine refused to run.
    #[error(transparent)]
    Refused(#[from] EngineError),
}

/// Returns the subject of the message of [`RunError::Iterations`].
fn loops(all: bool) -> &'static str {
    if all { "the loops and calls of this run take" } else { "this loop takes" }
}

impl RunError {
    /// Returns the error with the number of the replica, if it is about what one replica does.
    pub(crate) fn in_replica(self, replica: u32) -> RunError {
        match self {
            RunError::Check { .. } | RunError::Workers { .. } | RunError::Abort { .. } | RunError::Row { .. } => {
                RunError::InReplica { replica, error: Box::new(self) }
            }
            _ => self,
        }
    }

    /// Returns the error as a diagnostic at the location of the failure.
    pub fn diagnostic(&self) -> Diagnostic {
        match self {
            RunError::Check { diagnostic, .. } | RunError::Workers { diagnostic, .. } => (**diagnostic).clone(),
            RunError::Abort { span, .. } => Diagnostic::error("run::abort", *span, self.to_string()),
            RunError::Iterations { all, span, .. } => {
                let limit = if *all { "total_iterations" } else { "iterations" };
                Diagnostic::error("run::too_many_iterations", *span, self.to_string())
                    .help(format!("if the loop is meant to run longer, raise the limit with `--limit {limit}=N`"))
            }
            RunError::Interpreted { span, .. } => Diagnostic::error("run::too_much_work", *span, self.to_string())
                .help("run in another mode, which is much faster, or raise the limit with `--limit interpreted=N`"),
            RunError::Nesting { span, .. } => Diagnostic::error("run::nesting", *span, self.to_string())
                .help("nest less, or raise the limit with `--limit nesting=N`"),
            RunError::InReplica { error, .. } => Diagnostic { message: self.to_string(), ..error.diagnostic() },
            RunError::StreamEnded { span, declared, packets, .. } => {
                let each = match packets {
                    1 => String::new(),
                    n => format!("; it takes one for each of {n} replicas"),
                };
                Diagnostic::error("run::stream_ended", *span, self.to_string())
                    .here(format!("this read found no packet{each}"))
                    .label(*declared, "declared here")
                    .help("give a longer file, or declare the stream `with (wrap: true)`")
            }
            RunError::Stream { span, .. } => Diagnostic::error("run::stream", *span, self.to_string()),
            RunError::Row { span, .. } => Diagnostic::error("run::row", *span, self.to_string())
                .help("rows of a remote buffer are counted from 0"),
            RunError::Diverged { span, .. } => Diagnostic::error("run::diverged", *span, self.to_string())
                .help("reduce the value over the replicas first, with `collectives.all_reduce(…)`"),
            RunError::Cancelled => Diagnostic::error("run::cancelled", Span::NONE, self.to_string()),
            RunError::Refused(e) => e.diagnostic(),
        }
    }
}

impl From<girder_host::HostError> for EngineError {
    fn from(error: girder_host::HostError) -> EngineError {
        EngineError::Internal(error.0)
    }
}

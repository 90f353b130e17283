//! Diagnostics of the race rule, in the user's names.
//!
//! Invariant: messages are in the order of the text, and their number for each step is bounded.

use crate::race_rule::{Conflict, Touch, Verdict, Who, by_written_var, decide, decide_branches, is_constant};
use girder_ir::graph::Graph;
use girder_ir::ids::{StepId, VarId};
use girder_ir::placement::Placement;
use girder_source::{Cancel, Diagnostic, OriginId, Span};

/// The number of messages for each step.
const MAX_MESSAGES: usize = 4;

/// The graph and placement that messages name.
pub(super) struct Reporter<'a> {
    pub graph: &'a Graph,
    pub placement: &'a Placement,
}

impl Reporter<'_> {
    /// Returns the diagnostics of one compute set, copy or read.
    pub fn work(&self, name: &str, touches: &[Touch], cancel: &Cancel) -> Vec<Diagnostic> {
        let mut found = vec![];
        for (var, touches) in by_written_var(touches.iter()) {
            if is_constant(self.graph, var) {
                found.extend(touches.iter().find(|t| t.written).map(|t| self.constant(var, t)));
                continue;
            }
            let Verdict { conflicts, elements } = decide(self.graph.vars[var].len(), &touches, cancel);
            let shown: u64 = conflicts.iter().map(|c| c.end - c.start).sum();
            let last = conflicts.len().wrapping_sub(1);
            for (i, c) in conflicts.iter().enumerate() {
                let more = if i == last { elements.saturating_sub(shown) } else { 0 };
                found.push(self.conflict(name, var, &touches, c, more));
            }
            if found.len() >= MAX_MESSAGES {
                found.truncate(MAX_MESSAGES);
                break;
            }
        }
        found
    }

    /// Returns the diagnostics of the branches of `par`.
    pub fn branches(&self, step: StepId, touches: &[Touch], cancel: &Cancel) -> Vec<Diagnostic> {
        let mut found = vec![];
        for (var, touches) in by_written_var(touches.iter()) {
            let verdict = decide_branches(self.graph.vars[var].len(), &touches, cancel);
            for c in &verdict.conflicts {
                let (a, b) = (touches[c.first.0], touches[c.second.0]);
                let range = self.range(var, c.start, c.end);
                let message = format!("branches of `par` that run at one time share `{range}`, and one writes it");
                let d = Diagnostic::error("race::branches", self.location(a, c.first.1), message);
                let d = d.here(self.role(a, c.first.1));
                // Only the word `par` is labelled: the whole statement would enclose the other labels.
                let par = self.span(self.graph.steps[step].origin);
                let par = Span::new(par.lo, par.hi.min(par.lo + "par".len() as u32));
                let d = self.second(d, b, c.second.1).label(par, "these branches");
                found.push(d.help("let the branches work on variables of their own, and exchange after them"));
            }
            if found.len() >= MAX_MESSAGES {
                break;
            }
        }
        found
    }

    fn constant(&self, var: VarId, touch: &Touch) -> Diagnostic {
        let v = &self.graph.vars[var];
        let message = format!("the constant `{}` is written", v.name);
        Diagnostic::error("race::constant", self.span(self.origin(touch)), message)
            .here("written here")
            .label(self.span(v.origin), "declared here")
            .help("declare it as a `var`, or write to another variable")
    }

    fn conflict(&self, name: &str, var: VarId, touches: &[&Touch], c: &Conflict, more: u64) -> Diagnostic {
        let (a, b) = (touches[c.first.0], touches[c.second.0]);
        let range = self.range(var, c.start, c.end);
        let one_vertex =
            matches!((a.who, b.who), (Who::Vertex(f, _), Who::Vertex(g, _)) if f == g) && c.first.1 == c.second.1;
        let (code, mut message, help) = match (a.who, b.who) {
            (Who::CopyTo(..) | Who::Read(_), _) => copy_wording(name, &range, a, b),
            _ if one_vertex => self.vertex_wording(name, &range, a, b),
            _ => set_wording(name, &range, b),
        };
        let in_library = |t: &Touch| {
            let mut calls = self.graph.origins.chain(self.origin(t));
            calls.next().is_some_and(|origin| origin.span.in_library())
        };
        let help = match code {
            "race::write_write" if in_library(a) && in_library(b) => {
                "the call has these elements twice among its arguments: give them once, or make two calls"
            }
            _ => help,
        };
        if more > 0 {
            let s = if more == 1 { "" } else { "s" };
            message += &format!(" (and {more} more element{s} of `{}` likewise)", self.graph.vars[var].name);
        }
        let d = Diagnostic::error(code, self.location(a, c.first.1), message).here(self.role(a, c.first.1));
        let d = self.second(d, b, c.second.1).help(help);
        let d = self.calls(d, self.origin(a));
        self.calls(d, self.origin(b))
    }

    /// Returns the wording for two touches by one vertex.
    fn vertex_wording(&self, name: &str, range: &str, a: &Touch, b: &Touch) -> Wording {
        let (first, second) = (self.field(a), self.field(b));
        if a.who == b.who {
            let message = format!("field `{first}` of one vertex names `{range}` twice and writes it");
            return ("race::aliased_output", message, "connect a view that names each element once");
        }
        if b.written {
            return set_wording(name, range, b);
        }
        let message =
            format!("a vertex of `{name}` reads `{range}` through `{second}` and writes it through `{first}`");
        let help = "use one `inout` field for it, write to another variable, or read a `copy(…)` that is made \
                        before the compute set";
        ("race::in_and_out", message, help)
    }

    /// Adds a label for the second touch.
    fn second(&self, d: Diagnostic, b: &Touch, instance: u64) -> Diagnostic {
        let (at, text) = (self.location(b, instance), self.role(b, instance));
        if d.labels.first().is_some_and(|l| l.span == at && l.text == text) {
            return d;
        }
        d.label(at, text)
    }

    /// Adds labels for the calls around a location that are not shown yet.
    fn calls(&self, mut d: Diagnostic, origin: OriginId) -> Diagnostic {
        let origins = &self.graph.origins;
        for call in origins.chain(origin).skip(1).filter(|o| !o.span.in_library()).take(3) {
            if d.labels.iter().all(|l| l.span != call.span) {
                d = d.label(call.span, "in this call");
            }
        }
        d
    }

    fn span(&self, origin: OriginId) -> girder_source::Span {
        self.graph.origins.span(origin)
    }

    /// Returns the location of the statement that made an instance of a touch.
    fn location(&self, touch: &Touch, instance: u64) -> girder_source::Span {
        match touch.who {
            Who::Vertex(family, _) => self.graph.families[family].span(&self.graph.origins, instance),
            _ => self.span(self.origin(touch)),
        }
    }

    fn origin(&self, touch: &Touch) -> OriginId {
        match touch.who {
            Who::Vertex(family, _) => self.graph.families[family].origin,
            Who::CopyTo(copy, i) | Who::CopyFrom(copy, i) => self.graph.copies[copy].families[i].origin,
            Who::Read(step) | Who::Step(step) => self.graph.steps[step].origin,
        }
    }

    fn field(&self, touch: &Touch) -> &str {
        match touch.who {
            Who::Vertex(family, field) => &self.graph.codelets[self.graph.families[family].codelet].fields[field].name,
            _ => "",
        }
    }

    /// Returns the role of a touch, such as `dot[3] on tile 7 writes through y`.
    fn role(&self, touch: &Touch, instance: u64) -> String {
        let verb = if touch.written { "writes" } else { "reads" };
        let Who::Vertex(id, _) = touch.who else {
            return format!("{verb} it here");
        };
        let family = &self.graph.families[id];
        let spec = &self.graph.codelets[family.codelet];
        // The user does not know a codelet that a pass has made.
        if spec.span == Span::default() {
            return format!("{verb} it here");
        }
        let codelet = &spec.name;
        let point = self.graph.index_of(id, instance);
        let index = if point.is_empty() { String::new() } else { format!("{point:?}") };
        let tile = self.placement.families[id]
            .as_ref()
            .map_or(String::new(), |map| format!(" on tile {}", map.at(&family.domain, instance)));
        format!("`{codelet}{index}`{tile} {verb} it through `{}`", self.field(touch))
    }

    /// Returns a range of flat elements in the user's indices, such as `w[3, 0..8]`. A range beyond one row is shown by
    /// its first row, unless it consists of whole rows.
    fn range(&self, var: VarId, start: u64, end: u64) -> String {
        let v = &self.graph.vars[var];
        let Some(&row) = v.shape.last() else {
            return v.name.to_string();
        };
        let mut rest = start;
        let mut index: Vec<String> = vec![];
        for &n in v.shape.iter().rev() {
            index.push((rest % n).to_string());
            rest /= n;
        }
        index.reverse();
        let (rank, first) = (v.shape.len(), start % row);
        if rank > 1 && first == 0 && (end - start).is_multiple_of(row) && end - start > row {
            let (above, from) = (v.shape[rank - 2], start / row % v.shape[rank - 2]);
            index[rank - 2] = format!("{from}..{}", (from + (end - start) / row).min(above));
            index[rank - 1] = "..".to_string();
        } else if end - start > 1 {
            index[rank - 1] = format!("{first}..{}", (first + end - start).min(row));
        }
        format!("{}[{}]", v.name, index.join(", "))
    }
}

/// The code, message and help of a diagnostic.
type Wording = (&'static str, String, &'static str);

/// Returns the wording for a copy, or for a packet that is read.
fn copy_wording(name: &str, range: &str, a: &Touch, b: &Touch) -> Wording {
    match (a.who, b.who) {
        (Who::Read(_), _) => (
            "race::aliased_output",
            format!("the packet is read into `{range}` twice"),
            "read into a view that names each element once",
        ),
        (_, Who::CopyTo(..)) => (
            "race::copy_overlap",
            format!("copy `{name}` writes `{range}` twice"),
            "write each element once, or use two copies",
        ),
        _ => (
            "race::copy_overlap",
            format!("copy `{name}` reads and writes `{range}`"),
            "copy to a temporary first, and from there in a second copy",
        ),
    }
}

/// Returns the wording for two vertices, the second of which is `b`.
fn set_wording(name: &str, range: &str, b: &Touch) -> Wording {
    if b.written {
        let message = format!("`{range}` is written twice in compute set `{name}`");
        return ("race::write_write", message, "let one vertex write each element, or use two compute sets");
    }
    let message = format!("`{range}` is written and read in compute set `{name}`");
    ("race::read_write", message, "write to a second variable (double buffering), or use two compute sets")
}

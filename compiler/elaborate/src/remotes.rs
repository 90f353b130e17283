//! Remote buffers: those that a program declares, and those that hold what `#[offload]` keeps.

use crate::elaborator::entities::Persistent;
use crate::elaborator::{Elaborator, NodeKind};
use crate::value::{Given, Tensor, Value};
use girder_ir::graph::Stream;
use girder_ir::ids::StreamId;
use girder_ir::program::Effect;
use girder_ir::types::ElemType;
use girder_source::{Result, Span};
use girder_syntax::ast;
use smol_str::SmolStr;

/// The most rows of a buffer: they are counted by `i32`.
const ROWS: u32 = i32::MAX as u32;

impl Elaborator<'_> {
    /// Declares a remote buffer: `remote name: f32[rows, …];`
    pub fn remote(&mut self, v: &ast::VarDecl) -> Result<Value> {
        let (ty, shape) = self.supported(&v.ty)?;
        let help = "its rows are in the memory beside the tiles, and are zero at first: `remote rows: f32[100, 64];`";
        if v.init.is_some() || v.place.is_some() || v.within.is_some() {
            let message = "a remote buffer has no initial value and no place";
            return Err(self.error_help("elaborate::remote", v.span, message, help));
        }
        let Some((&rows, row)) = shape.split_first() else {
            return Err(self.error_help("elaborate::remote", v.span, "a remote buffer has rows", help));
        };
        let name = self.unique_persistent_name(&v.name.dotted());
        let remote = self.remote_buffer(name, ty, rows, row, v.span)?;
        self.entities.persistent.push(Persistent::Remote(remote));
        Ok(Value::Stream(remote))
    }

    /// Makes a remote buffer of `rows` rows of a shape.
    pub fn remote_buffer(
        &mut self,
        name: SmolStr,
        ty: ElemType,
        rows: u64,
        row: &[u64],
        span: Span,
    ) -> Result<StreamId> {
        let Some(rows) = u32::try_from(rows).ok().filter(|&rows| rows <= ROWS) else {
            let message = format!("a remote buffer has at most {ROWS} rows, not {rows}");
            return Err(self.error_help("elaborate::remote", span, message, "make rows longer, or loops shorter"));
        };
        let origin = self.origin_at(span);
        let (shape, rows) = (row.iter().copied().collect(), Some(rows));
        let (input, wrap, shuffle, ahead, same) = (true, false, None, 0, false);
        let offloaded = false;
        let stream = Stream { name, input, ty, shape, wrap, shuffle, ahead, same, rows, offloaded, origin };
        let others = self.graph.streams.values().map(Stream::remote_bytes);
        let all = others.fold(stream.remote_bytes(), u64::saturating_add);
        let room = self.machine.streaming.bytes.saturating_mul(u64::from(self.machine.ipus));
        if all > room {
            let message = format!("the remote buffers take {all} bytes, but the memory beside the tiles has {room}");
            let help = "declare fewer rows, or choose a larger target; `streaming.bytes` of a machine is that of one \
                        processor";
            return Err(self.error_help("memory::remote", span, message, help));
        }
        Ok(self.graph.streams.push(stream))
    }

    /// Selects the row of a remote buffer that the next packet is.
    pub fn seek(&mut self, remote: StreamId, row: &Tensor, span: Span) -> Result<()> {
        self.selected = Some(remote);
        self.push(NodeKind::Effect(Effect::Seek { stream: remote, row: row.view.clone() }), span)
    }

    /// Checks that a packet of a remote buffer has a row.
    pub fn row_is_selected(&mut self, id: StreamId, span: Span) -> Result<()> {
        if self.graph.streams[id].rows.is_none() || self.selected.take() == Some(id) {
            return Ok(());
        }
        let name = self.graph.streams[id].name.clone();
        let message = "a remote buffer is read and written row by row";
        let help = format!("write `read({name}[k])` or `{name}[k] <- x`");
        Err(self.error_help("elaborate::remote", span, message, help))
    }

    /// Elaborates `seek(remote, row)`, which printed text has before a packet.
    pub fn seek_call(&mut self, given: Vec<Given>, span: Span) -> Result<Value> {
        let [remote, row] = self.required("seek", ["remote", "row"], given, span)?;
        let id = match remote.value {
            Value::Stream(id) if self.graph.streams[id].rows.is_some() => id,
            other => return Err(self.expected("a remote buffer", &other, remote.span)),
        };
        match row.value {
            Value::Tensor(row) if row.ty == ElemType::I32 && row.view.rank() == 0 => self.seek(id, &row, span)?,
            other => return Err(self.expected("an i32 of rank 0", &other, row.span)),
        }
        Ok(Value::Unit)
    }
}

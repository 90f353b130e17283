//! The memory beside the tiles: the rows of remote buffers, of which each replica has its own.
//!
//! Invariant: a selected row exists. A run begins with row 0 of each buffer.

use crate::error::EngineError;
use cranelift_entity::SecondaryMap;
use girder_ir::graph::Graph;
use girder_ir::ids::StreamId;

/// All remote buffers.
#[derive(Default)]
pub(crate) struct Remotes {
    /// By stream: the buffer of each replica.
    buffers: SecondaryMap<StreamId, Vec<Remote>>,
}

/// The buffer of a replica.
#[derive(Clone, Default)]
struct Remote {
    bytes: Vec<u8>,
    row_bytes: usize,
    rows: u32,
    selected: usize,
}

impl Remotes {
    /// Returns the buffers of a graph, filled with zeros; together with the variables at most `limit` bytes.
    pub(crate) fn new(graph: &Graph, limit: u64) -> Result<Remotes, EngineError> {
        let replicas = graph.replicas.max(1);
        let remote: u64 = graph.streams.values().map(|s| s.remote_bytes()).fold(0, u64::saturating_add);
        let vars = graph.vars.values().map(|v| v.bytes()).fold(0, u64::saturating_add);
        let needed = remote.saturating_add(vars).saturating_mul(u64::from(replicas));
        if remote > 0 && needed > limit {
            return Err(EngineError::HostMemory { needed, limit });
        }
        let mut remotes = Remotes::default();
        for (id, stream) in &graph.streams {
            let Some(rows) = stream.rows else { continue };
            let row_bytes = (stream.len() * u64::from(stream.ty.bytes())) as usize;
            // Zeros that no replica touches cost nothing.
            let buffer = || Remote { bytes: vec![0; row_bytes * rows as usize], row_bytes, rows, selected: 0 };
            remotes.buffers[id] = (0..replicas).map(|_| buffer()).collect();
        }
        Ok(remotes)
    }

    /// Selects the first rows.
    pub(crate) fn begin(&mut self) {
        self.buffers.values_mut().flatten().for_each(|buffer| buffer.selected = 0);
    }

    /// Selects a row; returns whether it exists.
    pub(crate) fn select(&mut self, stream: StreamId, replica: u32, row: i128) -> bool {
        let buffer = &mut self.buffers[stream][replica as usize];
        let exists = (0..i128::from(buffer.rows)).contains(&row);
        if exists {
            buffer.selected = row as usize;
        }
        exists
    }

    /// Returns the elements of the selected row; none if the buffer has no rows.
    pub(crate) fn row(&self, stream: StreamId, replica: u32) -> &[u8] {
        let buffer = &self.buffers[stream][replica as usize];
        buffer.bytes.get(buffer.selected * buffer.row_bytes..(buffer.selected + 1) * buffer.row_bytes).unwrap_or(&[])
    }

    /// Writes the elements of the selected row.
    pub(crate) fn set_row(&mut self, stream: StreamId, replica: u32, from: &[u8]) {
        let buffer = &mut self.buffers[stream][replica as usize];
        let at = buffer.selected * buffer.row_bytes;
        if let Some(row) = buffer.bytes.get_mut(at..at + buffer.row_bytes) {
            row.copy_from_slice(from);
        }
    }

    /// Returns the elements of all rows by replica, once if they are equal in all of them.
    pub(crate) fn all(&self, stream: StreamId) -> Vec<u8> {
        match &self.buffers[stream][..] {
            [] => vec![],
            [first, others @ ..] if others.iter().all(|b| b.bytes == first.bytes) => first.bytes.clone(),
            all => all.iter().flat_map(|b| b.bytes.iter().copied()).collect(),
        }
    }

    /// Writes the elements of all rows: those of each replica, or the same in all of them.
    pub(crate) fn set_all(&mut self, stream: StreamId, bytes: &[u8]) {
        let buffers = &mut self.buffers[stream];
        let each = buffers.first().map_or(0, |b| b.bytes.len());
        if each > 0 {
            let of_each = bytes.chunks_exact(each).cycle();
            buffers.iter_mut().zip(of_each).for_each(|(buffer, from)| buffer.bytes.copy_from_slice(from));
        }
    }
}

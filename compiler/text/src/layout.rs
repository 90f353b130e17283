//! The item `layout { on tile(0..4, 8) { start..end: what, live: a..b; … } }`: the addresses of `allocate-memory`.
//!
//! A block holds the elements of a variable (`x`), code (`code(dot, f32)`), the exchange code of a compute set or copy
//! (`transfers(main.dot)`), the state of a compute set's vertices (`state(main.dot)`), their local arrays
//! (`stack(main.dot)`), or the n-th landing buffer of a compute set or copy on the tile (`buffer(main.dot, 0)`). Rows
//! are sorted by address.
//!
//! Invariant: tiles with equal blocks are one row of the item. Reading takes time linear in the length of the text and
//! the number of tiles.

use crate::graph::Printer;
use crate::values::{HELP, MOST, Options, Values, Wrong, bad_row};
use girder_ir::codelet::GenericArg;
use girder_ir::graph::Graph;
use girder_ir::ids::{ComputeSetId, CopyId, SpecId, StreamId, VarId};
use girder_ir::layout::{Content, Layout, MemoryBlock, StridedTiles, TileClass, TileSet};
use girder_ir::types::ElemType;
use girder_machine::Machine;
use girder_source::{Diagnostic, Diagnostics, Failed, Result, Span};
use girder_syntax::ast::{self, Arg, ExprId, ExprKind, ItemKind, TableRow};
use girder_syntax::make::{arg, named, table};
use smol_str::SmolStr;
use std::collections::HashMap;

/// Adds the item.
pub fn print(p: &mut Printer<'_>, graph: &Graph, layout: &Layout) {
    let mut rows = vec![];
    for class in layout.classes() {
        let which = class.tiles.strided().iter().map(|s| arg(strided(p, s))).collect();
        let place = p.make.call_name("tile", which);
        let mut order: Vec<&MemoryBlock> = class.blocks.iter().collect();
        order.sort_unstable_by_key(|b| (b.address, b.content));
        let blocks = order.into_iter().map(|b| block(p, graph, b)).collect();
        rows.push(TableRow::On { place, table: table(blocks) });
    }
    p.make.item(ItemKind::Layout { options: vec![], table: table(rows) });
}

/// Prints tiles as `3`, `0..4` or `0..8 by 2`.
fn strided(p: &mut Printer<'_>, tiles: &StridedTiles) -> ExprId {
    let (first, end) = (tiles.first as u64, tiles.last() as u64 + 1);
    match (tiles.count, tiles.step) {
        (1, _) => p.make.uint(first),
        (_, 1) => p.make.span(first, end),
        (_, step) => {
            let (first, end, by) = (p.make.uint(first), p.make.uint(end), p.make.uint(step as u64));
            p.make.range_by(first, end, by)
        }
    }
}

fn block(p: &mut Printer<'_>, graph: &Graph, block: &MemoryBlock) -> TableRow {
    let start = p.make.hex(block.address as u64, 5);
    let end = p.make.hex(block.address as u64 + block.bytes as u64, 5);
    let key = p.make.range(start, end);
    let mut values = vec![arg(content(p, graph, block.content))];
    if let Some(live) = &block.live {
        values.push(named("live", p.make.span(live.start as u64, live.end as u64)));
    }
    girder_syntax::make::row(key, values)
}

fn content(p: &mut Printer<'_>, graph: &Graph, content: Content) -> ExprId {
    let (call, name, rest) = match content {
        Content::Var(var) => return p.make.name(&graph.vars[var].name),
        Content::Code(spec) => {
            let codelet = &graph.codelets[spec];
            ("code", &codelet.name, p.generics(&codelet.args))
        }
        Content::SetExchange(set) => ("transfers", &graph.sets[set].name, vec![]),
        Content::CopyExchange(copy) => ("transfers", &graph.copies[copy].name, vec![]),
        Content::VertexState(set) => ("state", &graph.sets[set].name, vec![]),
        Content::Stack(set) => ("stack", &graph.sets[set].name, vec![]),
        Content::SetBuffer(set, k) => ("buffer", &graph.sets[set].name, vec![p.make.uint(k as u64)]),
        Content::CopyBuffer(copy, k) => ("buffer", &graph.copies[copy].name, vec![p.make.uint(k as u64)]),
        Content::Packets(stream) => ("packets", &graph.streams[stream].name, vec![]),
    };
    let name = p.make.name(name);
    p.make.call_name(call, std::iter::once(name).chain(rest).map(arg).collect())
}

/// Reads the layout from a text.
pub fn read(graph: &Graph, tree: &ast::Module, machine: &Machine, diagnostics: &mut Diagnostics) -> Result<Layout> {
    let mut reader = Reader {
        values: Values::new(tree),
        taken: vec![false; machine.tiles() as usize],
        vars: graph.vars.iter().map(|(id, v)| (v.name.as_str(), id)).collect(),
        sets: graph.sets.iter().map(|(id, s)| (s.name.as_str(), id)).collect(),
        copies: graph.copies.iter().map(|(id, c)| (c.name.as_str(), id)).collect(),
        streams: graph.streams.iter().map(|(id, s)| (s.name.as_str(), id)).collect(),
        codes: graph.codelets.iter().map(|(id, c)| ((c.name.clone(), c.args.clone()), id)).collect(),
        classes: vec![],
        diagnostics,
        wrong: 0,
    };
    let mut first: Option<Span> = None;
    for item in &tree.items {
        let ItemKind::Layout { table, .. } = &item.kind else { continue };
        if let Some(first) = first {
            let d = Diagnostic::error("resume::duplicate_table", item.span, "there are two layouts");
            reader.diagnostics.push(d.label(first, "the first").help("remove one"));
            reader.wrong += 1;
        }
        first = Some(item.span);
        reader.values.tree().exprs.each_row(&table.rows).for_each(|row| reader.tile_row(row));
    }
    if reader.wrong > 0 {
        return Err(Failed);
    }
    Ok(Layout::new(reader.classes).expect("a tile that comes twice is an error above"))
}

struct Reader<'a> {
    values: Values<'a>,
    /// For each tile: whether a row has listed its blocks.
    taken: Vec<bool>,
    vars: HashMap<&'a str, VarId>,
    sets: HashMap<&'a str, ComputeSetId>,
    copies: HashMap<&'a str, CopyId>,
    streams: HashMap<&'a str, StreamId>,
    codes: HashMap<(SmolStr, Vec<GenericArg>), SpecId>,
    classes: Vec<TileClass>,
    diagnostics: &'a mut Diagnostics,
    /// Errors so far.
    wrong: usize,
}

impl<'a> Reader<'a> {
    fn wrong(&mut self, span: Span, why: &str) {
        if self.wrong < MOST {
            self.diagnostics.push(bad_row(span, why, HELP));
        }
        self.wrong += 1;
    }

    /// Reads `on tile(0..4, 8) { … }`.
    fn tile_row(&mut self, row: &'a TableRow) {
        let (place, table) = match row {
            TableRow::On { place, table } => (*place, table),
            row => return self.wrong(row.span(), "a layout goes tile by tile: `on tile(k) { … }`"),
        };
        let tiles = match self.place(place) {
            Ok(tiles) => TileSet::new(tiles),
            Err(why) => return self.wrong(self.values.tree().exprs[place].span, &why),
        };
        let mut blocks = Vec::with_capacity(table.rows.len());
        for row in self.values.tree().exprs.each_row(&table.rows) {
            let (span, read) = match row {
                TableRow::Row { key, values, to: None, family, span } if family.is_empty() => {
                    (*span, self.block(*key, values))
                }
                TableRow::On { place, .. } => {
                    (self.values.tree().exprs[*place].span, Err("`on` is not allowed inside `on`".into()))
                }
                row => (row.span(), Err("a block is `start..end: what, live: a..b;`".into())),
            };
            match read {
                Ok(block) => blocks.push(block),
                Err(why) => self.wrong(span, &why),
            }
        }
        blocks.sort_by_key(|b: &MemoryBlock| b.content);
        self.classes.push(TileClass { tiles, blocks });
    }

    /// Reads the tiles of a row, none of which may be in another row.
    fn place(&mut self, place: ExprId) -> std::result::Result<Vec<u32>, Wrong> {
        let which = match self.values.call(place) {
            Some((name, args)) if name == "tile" && !args.is_empty() => args,
            _ => return Err("a layout goes tile by tile: `on tile(k) { … }`".into()),
        };
        let mut tiles = vec![];
        for e in which {
            let (first, count, step) = self.values.strided(e)?;
            for tile in (0..count as u64).map(|k| first as u64 + k * step as u64) {
                match self.taken.get_mut(tile as usize) {
                    None => return Err(format!("the machine has {} tiles", self.taken.len())),
                    Some(true) => return Err(format!("tile {tile} has come before")),
                    Some(taken) => *taken = true,
                }
                tiles.push(tile as u32);
            }
        }
        Ok(tiles)
    }

    fn block(&self, key: ExprId, values: &'a [Arg]) -> std::result::Result<MemoryBlock, Wrong> {
        let (address, bytes) = self.range(key)?;
        let [Arg { name: None, value }, rest @ ..] = values else {
            return Err("a block names its content after the colon".into());
        };
        let mut options = Options::new(rest)?;
        let live = match options.take("live") {
            None => None,
            Some(e) => {
                let (start, count) = self.range(e)?;
                Some(start..start.checked_add(count).ok_or("the live range has no end")?)
            }
        };
        options.finish()?;
        Ok(MemoryBlock { content: self.content(*value)?, address, bytes, live })
    }

    /// Reads `start..end`. Returns the start and the length, which may be 0.
    fn range(&self, e: ExprId) -> std::result::Result<(u32, u32), Wrong> {
        let ExprKind::Range { start, end, closed: false, by: None } = self.values.tree().exprs[e].kind else {
            return Err("a range `start..end` is needed here".into());
        };
        let (start, end): (u32, u32) = (self.values.int(start)?, self.values.int(end)?);
        end.checked_sub(start).map(|n| (start, n)).ok_or_else(|| format!("the range {start}..{end} goes backwards"))
    }

    fn content(&self, e: ExprId) -> std::result::Result<Content, Wrong> {
        let v = self.values;
        if let Some(name) = v.name(e) {
            let var = self.vars.get(name.as_str()).ok_or_else(|| format!("there is no variable `{name}`"))?;
            return Ok(Content::Var(*var));
        }
        let unknown = || {
            "a block holds a variable, `code(…)`, `transfers(…)`, `state(…)`, `stack(…)`, `buffer(…)` or `packets(…)`"
                .to_string()
        };
        let (call, args) = v.call(e).ok_or_else(unknown)?;
        let (first, rest) = args.split_first().ok_or_else(unknown)?;
        let name = v.name(*first).ok_or_else(unknown)?;
        match (call.as_str(), rest) {
            ("code", generics) => {
                let args = generics.iter().map(|&g| self.generic(g)).collect::<std::result::Result<Vec<_>, _>>()?;
                let key = (SmolStr::from(name), args);
                let code = self.codes.get(&key).ok_or_else(|| format!("no vertex runs `{}` of this form", key.0))?;
                Ok(Content::Code(*code))
            }
            ("state", []) => match self.sets.get(name.as_str()) {
                Some(&set) => Ok(Content::VertexState(set)),
                None => Err(format!("there is no compute set `{name}`")),
            },
            ("transfers", []) => match (self.sets.get(name.as_str()), self.copies.get(name.as_str())) {
                (Some(&set), _) => Ok(Content::SetExchange(set)),
                (None, Some(&copy)) => Ok(Content::CopyExchange(copy)),
                (None, None) => Err(format!("there is no compute set or copy `{name}`")),
            },
            ("packets", []) => match self.streams.get(name.as_str()) {
                Some(&stream) => Ok(Content::Packets(stream)),
                None => Err(format!("there is no stream `{name}`")),
            },
            ("stack", []) => match self.sets.get(name.as_str()) {
                Some(&set) => Ok(Content::Stack(set)),
                None => Err(format!("there is no compute set `{name}`")),
            },
            ("buffer", &[k]) => match (self.sets.get(name.as_str()), self.copies.get(name.as_str())) {
                (Some(&set), _) => Ok(Content::SetBuffer(set, v.int(k)?)),
                (None, Some(&copy)) => Ok(Content::CopyBuffer(copy, v.int(k)?)),
                (None, None) => Err(format!("there is no compute set or copy `{name}`")),
            },
            _ => Err(unknown()),
        }
    }

    fn generic(&self, e: ExprId) -> std::result::Result<GenericArg, Wrong> {
        match self.values.name(e) {
            Some(name) if name == "i64.min" => Ok(GenericArg::Int(i64::MIN)),
            Some(name) => {
                // Any other name is a function's; a wrong one names no codelet.
                Ok(ElemType::from_name(&name).map_or_else(|| GenericArg::Fn(name.as_str().into()), GenericArg::Type))
            }
            None => self.values.int(e).map(GenericArg::Int),
        }
    }
}

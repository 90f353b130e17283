//! Places: `tile(k)`, `ipu(k)`, `linear(…)`, `on place { … }`, and the tables of printed text.
//!
//! Invariant: every tile in a [`Mapping`] made here exists in the machine.

mod table;

use crate::elaborator::Elaborator;
use crate::maps::rows::overlay_all;
use crate::value::{Place, Value};
use girder_ir::placement::{Mapping, TileRange};
use girder_ir::types::ElemType;
use girder_source::{Result, Span};
use girder_syntax::ast;

/// The tiles of a variable, as far as the text gives them.
#[derive(Clone, Debug, Default)]
pub struct StatedTiles {
    /// The tiles of elements.
    pub mapping: Option<Mapping>,
    /// The tiles of other elements; `None` means all.
    pub within: Option<TileRange>,
}

impl<'a> Elaborator<'a> {
    /// Returns the tiles from which `tile(0)` counts here.
    pub fn current_place(&self) -> Place {
        self.emission.places().last().copied().unwrap_or(Place { first: 0, count: self.machine.tiles(), grain: None })
    }

    /// Returns the tiles of the innermost `on place { … }`; `None` if these are all tiles.
    pub fn within_here(&self) -> Option<TileRange> {
        self.emission.places().last().and_then(|place| self.some_tiles(*place))
    }

    /// Returns the tiles of the processors of the current place; `None` if these are all processors.
    pub fn processors_here(&self) -> Option<TileRange> {
        let (within, tiles) = (self.within_here()?, self.machine.chip.tiles);
        let (first, end) = (within.first / tiles, (within.first + within.count).div_ceil(tiles));
        let count = (end - first) * tiles;
        (count < self.machine.tiles()).then_some(TileRange { first: first * tiles, count })
    }

    /// Returns the tiles of a place; `None` if these are all tiles.
    pub fn some_tiles(&self, place: Place) -> Option<TileRange> {
        (place.count < self.machine.tiles()).then_some(TileRange { first: place.first, count: place.count })
    }

    /// Returns the site of a variable or vertex for which the text gives none.
    pub fn site_here(&self) -> StatedTiles {
        StatedTiles { mapping: None, within: self.within_here() }
    }

    /// Evaluates `within place`.
    pub fn within(&mut self, place: ast::ExprId) -> Result<Option<TileRange>> {
        let place = self.place(place)?;
        Ok(self.some_tiles(place))
    }

    /// Evaluates under `on place { … }`.
    pub fn at_place<T>(&mut self, place: Place, f: impl FnOnce(&mut Self) -> T) -> T {
        let depth = self.emission.places().len();
        self.emission.enter_place(place);
        let value = f(self);
        self.emission.leave_places(depth);
        value
    }

    /// Evaluates a place.
    pub fn place(&mut self, expr: ast::ExprId) -> Result<Place> {
        let span = self.tree().exprs[expr].span;
        match self.expr(expr)? {
            Value::Place(p) => Ok(p),
            Value::Error => Err(girder_source::Failed),
            other => {
                let message = format!("a place is needed here, but this is {}", other.describe());
                Err(self.error_help("place::not_a_place", span, message, "write `tile(k)`, `ipu(k)` or `linear()`"))
            }
        }
    }

    /// Evaluates the place of a vertex: one tile.
    pub fn one_tile(&mut self, place: &ast::Place) -> Result<u32> {
        let ast::Place::Expr(e) = place else {
            let span = place_span(place);
            return Err(self.error("place::not_one_tile", span, "a vertex runs on one tile"));
        };
        let place = self.place(*e)?;
        if place.count != 1 {
            let span = self.tree().exprs[*e].span;
            let message = format!("a vertex runs on one tile, but this place has {}", place.count);
            return Err(self.error("place::not_one_tile", span, message));
        }
        Ok(place.first)
    }

    /// Evaluates `tile(k)` or `tile(a..b)`, counted from the current place.
    pub fn tile_place(&mut self, arg: &Value, span: Span) -> Result<Place> {
        self.memo_table.reads += 1;
        let here = self.current_place();
        let (start, count) = match arg {
            Value::Int(k) => (*k, 1),
            Value::Range(r) if r.step == 1 && r.count >= 1 => (r.start, r.count),
            Value::Range(_) => {
                return Err(self.error("place::empty", span, "a place is an ascending range of at least one tile"));
            }
            other => {
                let message = format!("`tile` takes an integer or a range, not {}", other.describe());
                return Err(self.error("place::not_a_tile", span, message));
            }
        };
        let end = start as i128 + count as i128;
        if start < 0 || end > here.count as i128 {
            let last = end - 1;
            let missing = match count {
                1 => format!("there is no tile {start}"),
                _ => format!("there are no tiles {start} to {last}"),
            };
            let message = format!("{missing}: there are {} tiles here", here.count);
            let help = match self.emission.places().len() {
                0 => format!("tiles of {} are 0 to {}; `--target` chooses another", self.machine.name, here.count - 1),
                _ => "inside `on` tiles are counted from the first of the place".to_string(),
            };
            return Err(self.error_help("place::no_such_tile", span, message, help));
        }
        Ok(Place { first: here.first + start as u32, count: count as u32, grain: None })
    }

    /// Evaluates `ipu(k)`.
    pub fn ipu_place(&mut self, arg: &Value, span: Span) -> Result<Place> {
        let (start, count) = match arg {
            Value::Int(k) => (*k, 1),
            Value::Range(r) if r.step == 1 && r.count >= 1 => (r.start, r.count),
            Value::Range(_) => {
                let message = "a place is an ascending range of at least one ipu";
                return Err(self.error("place::empty", span, message));
            }
            other => {
                let message = format!("`ipu` takes an integer or a range, not {}", other.describe());
                return Err(self.error("place::not_a_tile", span, message));
            }
        };
        let end = start as i128 + count as i128;
        if start < 0 || end > self.machine.ipus as i128 {
            let missing = if start < 0 { start as i128 } else { end - 1 };
            let (name, ipus) = (&self.machine.name, self.machine.ipus);
            let (message, help) = match self.machine.partition.replicas {
                1 => {
                    let known = match ipus {
                        1 => "its number is 0".to_string(),
                        _ => format!("their numbers are 0 to {}", ipus - 1),
                    };
                    let help = format!("{known}; `--target` chooses another machine");
                    (format!("there is no ipu {missing}: {name} has {ipus}"), help)
                }
                replicas => {
                    let all = ipus * replicas;
                    let help = format!(
                        "the {all} ipus are divided among {replicas} replicas: take fewer `--replicas`, or a larger \
                         `--target`"
                    );
                    (format!("there is no ipu {missing}: a replica on {name} has {ipus}"), help)
                }
            };
            return Err(self.error_help("place::no_such_tile", span, message, help));
        }
        let per = self.machine.chip.tiles;
        Ok(Place { first: start as u32 * per, count: count as u32 * per, grain: None })
    }

    /// Returns the site that the text of a declaration gives its variable.
    pub fn site(&mut self, v: &ast::VarDecl, shape: &[u64], ty: ElemType) -> Result<StatedTiles> {
        let mapping = v.place.as_ref().map(|place| self.mapping(place, shape, ty)).transpose()?;
        let within = match (v.within, &mapping) {
            (Some(place), _) => self.within(place)?,
            (None, Some(_)) => None,
            (None, None) => self.within_here(),
        };
        Ok(StatedTiles { mapping, within })
    }

    /// Returns the mapping that an `on …` after a declaration gives its variable.
    fn mapping(&mut self, place: &ast::Place, shape: &[u64], ty: ElemType) -> Result<Mapping> {
        // Making the variable later reports one with too many elements.
        let len = shape.iter().fold(1u64, |n, &d| n.saturating_mul(d)).min(u64::from(u32::MAX));
        match place {
            ast::Place::Expr(e) => Ok(self.place(*e)?.spread(len, ty)),
            ast::Place::Table(table) => {
                let (mut runs, used) = (Vec::new(), self.session.memory.used());
                self.mapping_rows(&table.rows, table.span, len, &mut runs)?;
                self.placed_once(&mut runs)?;
                let runs: Vec<_> = runs.into_iter().map(|r| (r.start, r.end, r.tile)).collect();
                let mapping = Mapping::fit(shape, overlay_all(len, runs));
                self.session.memory.set_back(used);
                Ok(mapping)
            }
        }
    }
}

fn place_span(place: &ast::Place) -> Span {
    match place {
        ast::Place::Table(t) => t.span,
        ast::Place::Expr(_) => Span::NONE,
    }
}

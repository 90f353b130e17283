//! Statements of random models.

use super::{Maker, Style, list};

impl Maker {
    pub fn block(&mut self, statements: usize) {
        for _ in 0..statements {
            self.statement();
        }
    }

    fn statement(&mut self) {
        let (choices, depth) = match self.style {
            Style::Flat => (14, 2),
            Style::Nested => (20, 3),
            Style::Rich => (30, 2),
            Style::Twice => (17, 2),
        };
        let twice = self.style == Style::Twice;
        match self.random.below(choices) {
            0..=6 => self.value(),
            7 => self.declare(),
            8 | 9 => self.write(),
            10 => self.rewrite(),
            11 if self.depth < depth => self.branch(),
            12 if self.depth < depth => self.repeat(),
            13 if twice => self.again(),
            14..=16 if twice => self.gradient(),
            14 | 15 if self.depth < depth => self.branch(),
            16 | 17 if self.depth < depth => self.repeat(),
            18 | 19 if self.depth < depth => self.switch(),
            20 => self.alias(),
            21 => self.write_both(),
            22 => self.add_rows(),
            23 if self.depth < depth => self.par(),
            24 | 25 => self.again(),
            26 if self.depth == 0 => self.stopped(),
            27 => self.chosen(),
            28 => self.pattern(),
            _ => self.value(),
        }
    }

    fn value(&mut self) {
        let Some((value, shape)) = self.computed() else { return };
        let name = self.name();
        self.line(&format!("let {name} = {value};"));
        self.tensors.push((name, shape));
    }

    /// A value that is computed again in the reverse program.
    fn again(&mut self) {
        let Some((value, shape)) = self.computed() else { return };
        let name = self.name();
        let more = self.expression("inner", &shape);
        let text = match self.random.below(3) {
            0 => format!("#[recompute] let {name} = {value};"),
            1 => format!("#[recompute] let {name} = {{ let inner = {value}; {more} }};"),
            _ => {
                let dims = list(&shape);
                let step = self.expression("inner", &shape);
                format!(
                    "#[recompute] let {name} = {{ var inner: f64[{dims}]; inner <- {value}; repeat 2 {{ inner <- \
                     {step}; }} {more} }};"
                )
            }
        };
        self.line(&text);
        self.tensors.push((name, shape));
    }

    fn declare(&mut self) {
        let (operand, shape) = self.view();
        if shape.is_empty() || self.depth > 0 || shape.iter().product::<u64>() > 64 {
            return;
        }
        let name = self.name();
        let value = self.expression(&operand, &shape);
        self.line(&format!("var {name}: f64[{}]; {name} <- {value};", list(&shape)));
        self.vars.push((name.clone(), shape.clone()));
        self.tensors.push((name, shape));
    }

    /// A second name for the elements of a variable.
    fn alias(&mut self) {
        let Some((var, shape)) = self.var() else { return };
        let name = self.name();
        let (view, shape) = match self.random.below(3) {
            0 => (format!("{var}.reverse(0)"), shape),
            1 => (format!("{var}.flatten()"), vec![shape.iter().product()]),
            _ => (format!("{var}[.. by 2]"), [shape[0].div_ceil(2)].into_iter().chain(shape[1..].to_vec()).collect()),
        };
        self.line(&format!("let {name} = {view};"));
        if self.depth == 0 {
            self.vars.push((name.clone(), shape.clone()));
        }
        self.tensors.push((name, shape));
    }

    /// Writes a part of a variable.
    fn write(&mut self) {
        let Some((name, shape)) = self.var() else { return };
        let (n, rest) = (shape[0], shape[1..].to_vec());
        let k = self.random.below(n as usize);
        let other = self.fitting(&rest);
        let value = if self.once_in(2) { format!("0.9 * {other}") } else { other };
        match self.index(n).filter(|_| k.is_multiple_of(2)) {
            Some(index) => self.line(&format!("{name}[{index}] <- {value};")),
            None => self.line(&format!("{name}[{k}] <- {value};")),
        }
    }

    /// Writes parts of two variables at once.
    fn write_both(&mut self) {
        let (Some((a, s)), Some((b, t))) = (self.var(), self.var()) else { return };
        if a == b || s[1..] != t[1..] || self.vars.len() > 2 {
            return;
        }
        let rest: Vec<u64> = [s[0] + t[0] - 1].into_iter().chain(s[1..].to_vec()).collect();
        let value = self.fitting(&rest);
        self.line(&format!("concat([{a}, {b}])[1..] <- 0.8 * {value};"));
    }

    /// Adds to some rows of a variable.
    fn add_rows(&mut self) {
        let Some((name, shape)) = self.var() else { return };
        let (k, j) = (self.random.below(shape[0] as usize), self.random.below(shape[0] as usize));
        let rest: Vec<u64> = [3].into_iter().chain(shape[1..].to_vec()).collect();
        let value = self.same(&rest);
        self.line(&format!("scatter_add({name}, i32([{k}, {k}, {j}]), 0.5 * {value});"));
    }

    /// Writes all of a variable.
    fn rewrite(&mut self) {
        let Some((name, shape)) = self.var() else { return };
        let value = self.expression(&name, &shape);
        self.line(&format!("{name} <- {value};"));
    }

    /// A stopped value. It differs from what it was made of, so that no two operands of `maximum` are equal.
    fn stopped(&mut self) {
        let (value, shape) = self.view();
        let name = self.name();
        let dims = list(&shape);
        let ty = if shape.is_empty() { "f64".into() } else { format!("f64[{dims}]") };
        self.frozen.push(format!("var frozen_{name}: {ty};\n"));
        self.lines(
            &format!("frozen_{name} <- stopped({value}); let {name} = stopped({value}) * 0.87 + 0.013;"),
            &format!("let {name} = frozen_{name} * 0.87 + 0.013;"),
        );
        self.tensors.push((name, shape));
    }

    /// A value that a branch chooses.
    fn chosen(&mut self) {
        let (operand, shape) = self.view();
        if shape.iter().product::<u64>() > 64 {
            return;
        }
        let (cond, name) = (self.condition(), self.name());
        let (a, b) = (self.expression(&operand, &shape), self.expression(&operand, &shape));
        self.line(&format!("let {name} = if {cond} {{ {a} }} else {{ {b} }};"));
        self.tensors.push((name, shape));
    }

    /// Several results of a function.
    fn pattern(&mut self) {
        let (operand, shape) = self.view();
        if shape.iter().product::<u64>() > 64 {
            return;
        }
        let (a, b) = (self.name(), self.name());
        self.line(&format!("let ({a}, {b}) = paired({operand}); let {a}_ = {b}[1] * 0.5;"));
        self.tensors.extend([(a.clone(), shape.clone()), (format!("{a}_"), shape)]);
    }

    /// The gradient of a part of the model.
    fn gradient(&mut self) {
        let Some((value, _)) = self.computed() else { return };
        let k = self.random.below(self.tensors.len());
        let k = if self.once_in(2) { k } else { 0 };
        let (by, shape) = self.tensors[k].clone();
        let name = self.name();
        let (last, _) = self.tensors[self.tensors.len() - 1].clone();
        self.line(&format!("let {name} = grad(sum({value}) + sum(tanh({last})), wrt: {by});"));
        self.tensors.push((name, shape));
    }

    fn inner(&mut self, statements: usize) {
        let tensors = self.tensors.len();
        self.depth += 1;
        self.block(statements);
        self.rewrite();
        self.depth -= 1;
        self.tensors.truncate(tensors);
    }

    fn condition(&mut self) -> String {
        let (name, _) = self.pick();
        // Not 0: the sum of what remains without its mean is a rounding error.
        let limit = self.random.below(5) as f64 * 0.3 - 0.617;
        format!("sum({name}) > {limit:?}")
    }

    fn branch(&mut self) {
        let cond = self.condition();
        self.line(&format!("if {cond} {{"));
        let n = self.length();
        self.inner(n);
        if self.once_in(4) {
            self.line("}");
            return;
        }
        self.line("} else {");
        let n = self.length();
        self.inner(n);
        self.line("}");
    }

    fn switch(&mut self) {
        let on = match self.indices.last() {
            Some((index, _)) => index.clone(),
            None => format!("i32(sum({}) * 2.0)", self.pick().0),
        };
        self.line(&format!("switch {on} {{"));
        for keys in ["0", "1..3", "_"] {
            self.depth += 1;
            self.line(&format!("{keys} => {{"));
            let n = self.length();
            self.inner(n);
            self.line("}");
            self.depth -= 1;
        }
        self.line("}");
    }

    /// Two bodies, each of which writes one of two variables and does not read the other.
    fn par(&mut self) {
        let (Some(a), Some(b)) = (self.var(), self.var()) else { return };
        if a.0 == b.0 || self.vars.len() > 2 {
            return;
        }
        let (tensors, vars) = (self.tensors.clone(), self.vars.clone());
        let is_view_of = |name: &str| self.text[0].contains(&format!("let {name} = "));
        if is_view_of(&a.0) || is_view_of(&b.0) {
            return;
        }
        let place = self.once_in(2);
        self.line("par {");
        self.depth += 1;
        for (k, (own, other)) in [(&a, &b), (&b, &a)].into_iter().enumerate() {
            self.tensors.retain(|t| t.0 != other.0);
            self.vars.retain(|t| t == own);
            self.line(&if place { format!("on tile({k}) {{") } else { "{".into() });
            self.inner(1);
            self.line("}");
            (self.tensors, self.vars) = (tensors.clone(), vars.clone());
        }
        self.depth -= 1;
        self.line("}");
    }

    fn repeat(&mut self) {
        if self.vars.is_empty() {
            return;
        }
        let count = 1 + self.random.below(3);
        self.names += 1;
        let index = format!("k{}", self.names);
        let indices = self.indices.len();
        let up = format!("repeat {index} in 0..{count}");
        let head = match self.random.below(5) {
            0 => format!("repeat {count}"),
            1 => format!("#[recompute] repeat {count}"),
            2 => {
                self.indices.push((index, count as u64));
                up
            }
            3 => {
                self.indices.push((index, count as u64));
                format!("#[recompute] {up}")
            }
            _ => {
                self.indices.push((index.clone(), count as u64 + 1));
                format!("repeat {index} in {count}..0 by -1")
            }
        };
        self.line(&format!("{head} {{"));
        let n = self.length();
        self.inner(n);
        self.line("}");
        self.indices.truncate(indices);
    }

    /// Returns the number of statements of an inner block.
    fn length(&mut self) -> usize {
        1 + self.random.below(if self.style == Style::Nested { 5 } else { 3 })
    }
}

//! Random pipelines, and the loops that compute the same.

use crate::numbers::Random;

/// A chain of stages with uneven layers, skip connections and places.
pub struct Pipeline {
    micro_batches: usize,
    /// The places of the stages.
    places: Vec<String>,
    /// Whether the reverse computes the values of each stage again.
    recompute: Vec<bool>,
    /// The statements of each stage; the last one is its value.
    stages: Vec<String>,
    /// The shapes of the parameters.
    shapes: Vec<(usize, usize)>,
}

impl Pipeline {
    /// Makes the pipeline of a seed.
    pub fn new(seed: u64) -> Pipeline {
        let mut r = Random((seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let count = 1 + r.below(5);
        let micro_batches = 1 + r.below(2 * count + 2);
        let mut p = Pipeline { micro_batches, places: vec![], recompute: vec![], stages: vec![], shapes: vec![] };
        // The width of the value of each stage.
        let mut widths: Vec<usize> = vec![];
        for k in 0..count {
            p.places.push(match r.below(6) {
                0 => "ipu(0..2)".into(),
                1 => "tile(20..23)".into(),
                _ => format!("ipu({})", r.below(4)),
            });
            p.recompute.push(k > 0 && r.below(3) == 0);
            let mut text = String::new();
            let (mut value, mut width) = match k {
                0 => {
                    text += "let x = xs[turn_x]; turn_x += 1; ";
                    ("x".to_string(), 4)
                }
                _ => (format!("v{}", k - 1), widths[k - 1]),
            };
            // A skip connection from any earlier stage.
            if k > 1 && r.below(2) == 0 {
                let from = r.below(k - 1);
                let common = widths[from].min(width);
                text += &format!("let s = {value}[.., 0..{common}] + sin(v{from}[.., 0..{common}]); ");
                (value, width) = ("s".into(), common);
            }
            for layer in 0..r.below(3) + usize::from(k == 0) {
                let to = 2 + r.below(4);
                let w = match p.shapes.iter().position(|s| *s == (width, to)) {
                    Some(shared) if r.below(6) == 0 => shared,
                    _ => {
                        p.shapes.push((width, to));
                        p.shapes.len() - 1
                    }
                };
                let f = ["tanh", "relu", "sigmoid"][r.below(3)];
                text += &format!("let h{layer} = {f}({value} @ w{w}); ");
                (value, width) = (format!("h{layer}"), to);
            }
            text += &match r.below(4) {
                // A loop that keeps its iterations, and a branch that depends on data.
                0 => format!("var c: f32[3, {width}]; c <- {value}; repeat 2 {{ c <- sin(c) * 0.9 + {value}; }} c"),
                1 => format!("if sum({value}) > 0.0 {{ {value} * 0.7 }} else {{ {value} * {value} }}"),
                2 => format!("concat([{value}[.., 1..], {value}[.., 0..1] * 0.5], axis: 1)"),
                _ => format!("{value} * 0.8"),
            };
            widths.push(width);
            p.stages.push(text);
        }
        let last = p.stages.len() - 1;
        let value = std::mem::take(&mut p.stages[last]);
        p.recompute[last] &= last > 0;
        p.stages[last] = format!("let d = {{ {value} }}; mean(d * d + ys[0, 0, 0] * d)");
        p
    }

    fn head(&self) -> String {
        let mut text = "use optim;
            use random;
            var xs: f32[64, 3, 4] = random.normal(seed: 8);
            var ys: f32[1, 1, 1] = 0.25;
            var turn_x: i32;\n"
            .to_string();
        for (k, (m, n)) in self.shapes.iter().enumerate() {
            text += &format!("param w{k}: f32[{m}, {n}] = random.normal(seed: {k}, scale: 0.5);\n");
        }
        text + &format!("let net = [{}];\n", self.all(|k| format!("w{k}")))
    }

    fn all(&self, f: impl Fn(usize) -> String) -> String {
        (0..self.shapes.len()).map(f).collect::<Vec<_>>().join(", ")
    }

    fn shown(&self) -> String {
        (0..self.shapes.len()).map(|k| format!("print(\"w{k}\", w{k}); ")).collect()
    }

    /// Returns two training steps as a pipeline.
    pub fn staged(&self, schedule: &str) -> String {
        let mut body = String::new();
        for (k, text) in self.stages.iter().enumerate() {
            let recompute = if self.recompute[k] { "#[recompute] " } else { "" };
            body += &format!("{recompute}let v{k} = stage on {} {{ {text} }};\n", self.places[k]);
        }
        let (head, last, shown, n) = (self.head(), self.stages.len() - 1, self.shown(), self.micro_batches);
        format!(
            "{head}program main() {{
            repeat 2 {{
                let (loss, g) = pipeline(micro_batches: {n}, schedule: \"{schedule}\") {{
                    {body}(v{last}, grad(v{last}, wrt: net))
                }};
                optim.sgd(net, g, rate: 0.05);
                print(\"loss\", loss);
            }}
            {shown}
            }}"
        )
    }

    /// Returns the same as a loop over the micro-batches.
    pub fn looped(&self) -> String {
        let mut body = String::new();
        for (k, text) in self.stages.iter().enumerate() {
            body += &format!("let v{k} = {{ {text} }};\n");
        }
        let made: String =
            self.shapes.iter().enumerate().map(|(k, (m, n))| format!("var s{k}: f32[{m}, {n}]; ")).collect();
        let zeros: String = (0..self.shapes.len()).map(|k| format!("s{k} <- 0.0; ")).collect();
        let sums: String = (0..self.shapes.len()).map(|k| format!("s{k} += g[{k}]; ")).collect();
        let (head, last, shown, n) = (self.head(), self.stages.len() - 1, self.shown(), self.micro_batches);
        let all = self.all(|k| format!("s{k}"));
        format!(
            "{head}program main() {{
            var total: f32;
            {made}
            repeat 2 {{
                total <- 0.0; {zeros}
                repeat {n} {{
                    {body}
                    let g = grad(v{last}, wrt: net);
                    total += v{last}; {sums}
                }}
                optim.sgd(net, [{all}], rate: 0.05);
                print(\"loss\", total);
            }}
            {shown}
            }}"
        )
    }
}

//! Derivatives of reductions along every kind of axes, with and without reduced axes that stay.

/// The reductions of floats.
const REDUCTIONS: [&str; 8] = ["sum", "mean", "max", "min", "product", "variance", "std", "logsumexp"];
/// The axes: of all elements, one, from the end, adjacent ones, and others.
const AXES: [&str; 6] = ["()", "1", "-1", "[0, 1]", "[2, 0]", "[]"];

/// Returns the bodies of models of `w: f64[2, 3, 5]` that have the first to third derivatives of reductions. Each
/// reduction stays with the elements it comes from, so that no derivative is constant.
pub fn bodies() -> Vec<String> {
    let mut all = vec![];
    for (of, axis) in REDUCTIONS.iter().flat_map(|of| AXES.iter().map(move |axis| (of, axis))) {
        // The deviation of a single element has no derivative.
        if *axis == "[]" && matches!(*of, "std" | "variance") {
            continue;
        }
        for (keep, order) in [(true, 1), (true, 2), (true, 3), (false, 2), (false, 3)] {
            let mut body = format!("let y = {of}(sin(w), axis: {axis}, keep: {keep}); let g1 = sum(y * y * y);");
            for k in 1..order {
                body += &format!(" let h{k} = grad(g{k}, wrt: w); let g{} = sum(h{k} * h{k} * w);", k + 1);
            }
            all.push(format!("{body} return g{order};"));
        }
    }
    all
}

//! Models that use the graph functions of the library that have a derivative.

/// Models that use graph functions: the function, and a body over `x: f64[4, 3]` and `w: f64[2, 3, 5]`.
pub const MODELS: &[(&str, &str)] = &[
    ("dot", "return linalg.dot(x[0], x[1]) * 2.0;"),
    ("matmul", "let y = x @ x.transpose(); return sum(y * y);"),
    ("matmul", "let y = x @ w; return sum(y * y) + sum(w.permute([0, 2, 1]) @ w);"),
    ("matmul", "let y = x[0] @ w; let z = x @ x[1]; return sum(y * y) + sum(z * z) + x[2] @ x[3];"),
    ("matmul", "let y = matmul(x, w[0], partials: f64); return sum(exp(y));"),
    ("sum", "let y = sum(x, axis: 0) * x; return sum(y * y) + sum(sum(w, axis: [0, 2], keep: true) * w);"),
    ("sum", "let y = sum(x, axis: -1); return sum(y * y * y);"),
    ("mean", "let y = x - mean(x, axis: 1, keep: true); return mean(y * y * y);"),
    (
        "variance",
        "let y = variance(x, axis: 0) * x; let z = variance(w, axis: [0, 2], correction: 1, keep: true) * w; \
         return sum(y * y) + sum(z * z) + variance(w);",
    ),
    (
        "std",
        "let y = std(x, axis: -1, keep: true) * x; let z = std(w, axis: [0, 1], correction: 0.5); \
         return sum(y * y) + sum(z * z * z) + std(x.broadcast(30));",
    ),
    (
        "std",
        "let g = grad(std(x) + sum(variance(w, axis: 1)), wrt: (x, w)); return sum(g[0] * g[0] * x) + sum(g[1] * w);",
    ),
    (
        "logsumexp",
        "let z = concat(list i in 0..25 { x * (0.1 * i + 0.5) }, axis: 1); \
         let y = logsumexp(z, axis: 1, keep: true) * x; \
         return sum(y * y) / 100.0 + sum(logsumexp(w, axis: [0, 2])) + logsumexp(x) * x[0, 0];",
    ),
    ("logsumexp", "let g = grad(sum(exp(logsumexp(x, axis: 0) * 0.5)), wrt: x); return sum(g * g * x);"),
    (
        "norm",
        "let y = linalg.norm(x, axis: 1, keep: true) * x; return sum(y * y) + linalg.norm(w) * linalg.norm(x[0]);",
    ),
    ("norm", "let y = linalg.norm(w, axis: [0, 2]); let g = grad(sum(y * y * y), wrt: w); return sum(g * w * w);"),
    ("product", "let y = product(x, axis: 1); return sum(y * y) + product(x[0]) + sum(product(w, axis: [0, 2]));"),
    ("product", "let y = x * f64(x < 0.3); return sum(product(y, axis: 0)) + product(y);"),
    (
        "each_but_some",
        "let g = grad(sum(product(x, axis: 1) * x[.., 0]), wrt: x); let h = grad(sum(g * g), wrt: x); \
         let k = grad(sum(h * h), wrt: x); return sum(k * k);",
    ),
    (
        "each_but_one",
        "let g = grad(sum(square(product(x, axis: 1))) + product(w[.., 0]), wrt: (x: x, w: w)); \
         return sum(g.x * g.x * x) + sum(g.w * w);",
    ),
    ("cumsum", "let y = cumsum(x, axis: 0); return sum(y * y) + sum(cumsum(w, axis: 1, reverse: true) * w);"),
    (
        "cumsum",
        "let z = concat(list i in 0..25 { x }, axis: 1); let y = cumsum(z, axis: -1); return sum(y * cumsum(x)[11]);",
    ),
    ("picked", "let y = sorting.sort(x, axis: 0); return sum(y * y * y * w[0, 0, 0]) + sum(y[1] * x[0]);"),
    ("picked", "let t = sorting.topk(w, 2, axis: 1); return sum(exp(t.values)) + sum(t.values * w[.., 0..2]);"),
    ("picked", "let y = sorting.sort(w, descending: true); return sum(grad(sum(exp(y[.., .., 0..2])), wrt: w) * w);"),
    (
        "lstm",
        "let l = nn.lstm(5, 3, init: 0.3, T: f64); let r = l.run(w, (h: x[0..3], c: x[1..4])); \
         return sum(exp(r.y)) + sum(r.c);",
    ),
    (
        "gru",
        "let l = nn.gru(3, 3, init: -0.4, reverse: true, T: f64); let r = l.run(x, x[0]); \
         return sum(exp(r.y) * x) + r.h[1];",
    ),
    ("rnn", "let l = nn.rnn(5, 2, init: 0.3, bias: false, T: f64); let y = l.apply(w); return sum(y * y * y);"),
    ("min_of", "let y = min_of(x, axis: 0); return sum(y * y) + min_of(w);"),
    ("max_of", "let y = max_of(x, axis: 1, keep: true) * x; return sum(y * y) + sum(max_of(w, axis: [0, 2]));"),
    ("gather", "let y = gather(x, i32([2, 0, 2])); return sum(y * y * y);"),
    ("gather", "let y = gather(w, i32([[1], [1]])); return sum(y * y * y);"),
    ("scatter_add", "var y: f64[4, 3] = 0; scatter_add(y, i32([1, 3, 1, 0]), x * x); return sum(y * y);"),
    ("updated", "let y = updated(x * x, i32([2, 0, 2]), exp(x[1..4])); return sum(y * y * y);"),
    ("updated", "let y = updated(w, i32([[1], [1]]), w.expand(1)); return sum(exp(y));"),
    ("taken", "let y = slices.taken(x * x, i32([1, 3, 1, 0])); return sum(y * y);"),
    ("scattered", "let y = slices.scattered(x * x, i32([1, 3, 1, 0]), 6); return sum(y * y);"),
    (
        "segment_sum",
        "let y = segment_sum(x * x, i32([1, 3, 1, 0]), 5); \
         let z = segment_sum(w[0].flatten(), i32(list(0..15)) % 4, 4); return sum(y * y) + sum(z * z * z);",
    ),
    (
        "taken_along",
        "let y = take_along(x, i32([[1, 0], [0, 0], [2, 1], [1, 1]])); let z = take_along(w, i32([[[1, 0, 0, 2, 2]], \
         [[1, 1, 0, 2, 1]]]), axis: 1); return sum(y * y * y) + sum(z * z);",
    ),
    (
        "taken_along",
        "let z = concat(list i in 0..800 { x.flatten() * (0.001 * i + 0.5) }, axis: 0).expand(0); \
         let y = take_along(z, i32([[9000, 7, 4000, 7]])); return sum(y * y * y);",
    ),
    (
        "added_along",
        "let i = i32([[1, 0], [0, 0], [2, 1], [1, 1]]); let g = grad(sum(exp(take_along(x * x, i))), wrt: x); \
         return sum(g * g * x);",
    ),
    ("row", "var k: i32; k <- 2; let y = x[k]; let z = w[.., k]; return sum(y * y * y) + sum(z * z);"),
    ("rows", "var k: i32; k <- 1; let y = x.broadcast(2, axis: 0)[k..k + 4]; return sum(y * y * y);"),
    (
        "row",
        "var k: i32; k <- 5; let y = concat([x, x])[k]; let z = x[0].broadcast_to([4, 3])[k - 2]; return sum(y * z);",
    ),
    ("rows", "var k: i32; k <- 1; let y = x[k..k + 2]; return sum(y * y * y);"),
    ("put_row", "var k: i32; k <- 2; var y: f64[4, 3]; y <- x * x; y[k] <- exp(x[0]); return sum(y * y);"),
    ("put_rows", "var k: i32; k <- 1; var y: f64[4, 3]; y <- x * x; y[k..k + 2] <- x[0..2] * 3.0; return sum(y * y);"),
    (
        "put_row",
        "var y: f64[4, 3]; y <- x; repeat 2 { y[0, 0] <- tanh(y[1, 1]); y[0] <- y[0] * y[2]; } return sum(y * y * x);",
    ),
    ("put_row", "var y: f64[4, 3]; y <- x; repeat k in 0..3 { y[k + 1] <- sin(y[k] * y[k + 1]); } return sum(y * y);"),
    ("row", "var y: f64[3]; y <- 0.1; repeat k in 0..4 { y <- tanh(y * 2.0 + x[k]); } return sum(y * y);"),
    // Rows of up to 64 elements are one vertex; longer ones are cut into blocks.
    ("softmax", "let y = nn.softmax(x); return sum(y * y * x);"),
    (
        "softmax",
        "let z = concat(list i in 0..25 { x * (0.1 * i + 0.5) }, axis: 1); let y = nn.softmax(z); return sum(y * y);",
    ),
    ("softmax", "let y = nn.softmax(x, axis: 0); let z = nn.softmax(w, axis: 1); return sum(y * y * x) + sum(z * z);"),
    ("log_softmax", "let y = nn.log_softmax(w, axis: -2); return sum(y * y * w);"),
    ("log_softmax", "let y = nn.log_softmax(w); return sum(y * y * w);"),
    (
        "log_softmax",
        "let z = concat(list i in 0..25 { x * (0.1 * i + 0.5) }, axis: 1); let y = nn.log_softmax(z); \
         return sum(y * y) / 100.0;",
    ),
    ("cross_entropy", "return nn.cross_entropy(x * 2.0, i32([0, 2, 1, 2]));"),
    (
        "cross_entropy",
        "let p = f64([0.5, 2.0, 1.5]); let c = i32([0, 2, 1, 2]); \
         let y = nn.cross_entropy(x * 2.0, c, weights: p, ignore: 1, smoothing: 0.1, reduction: \"none\"); \
         return nn.cross_entropy(x, c, weights: p, ignore: 1, smoothing: 0.2) + sum(y * y);",
    ),
    (
        "cross_entropy",
        "let z = concat(list i in 0..25 { x * (0.1 * i + 0.5) }, axis: 1); let c = i32([3, 70, 32, 9]); \
         return nn.cross_entropy(z, c, ignore: 9, smoothing: 0.2) * nn.cross_entropy(z, c, reduction: \"sum\");",
    ),
    (
        "nll",
        "let z = concat(list i in 0..25 { x * x * (0.1 * i + 0.5) }, axis: 1); let p = f64([0.5, 2.0, 1.5]); \
         let y = nn.nll(w[0].transpose(), i32([0, 2, 1, 2, 0]), weights: p, reduction: \"none\"); \
         return sum(y * y) + nn.nll(z, i32([3, 70, 32, 9]), ignore: 9);",
    ),
    (
        "cross_entropy",
        "let (p, c) = (w[0, .., 0] * w[0, .., 0] + 0.5, i32([0, 2, 1, 2])); \
         let y = nn.cross_entropy(x, c, weights: p, ignore: 1, smoothing: 0.1, reduction: \"none\"); \
         return nn.cross_entropy(x, c, weights: p, smoothing: 0.2) + sum(y * y) \
         + nn.nll(x, c, weights: p, ignore: 0) + nn.nll(x, c, weights: p, reduction: \"sum\");",
    ),
    ("mse", "return nn.mse(x, exp(x)) + nn.mse(x, x * x * x, reduction: \"sum\");"),
    ("squared_error", "let y = nn.mse(x, x * x, reduction: \"none\"); return sum(y * y);"),
    (
        "mse",
        "return nn.mse(x, 1) + nn.l1(x, 2.0) + nn.bce_logits(w, 0.25) + nn.kl(x, 0.5) + nn.huber(x, -2, delta: 0.5);",
    ),
    ("l1", "return nn.l1(x, exp(x)) + nn.l1(w, w * w * w, reduction: \"sum\");"),
    ("absolute_error", "let y = nn.l1(x, x * x, reduction: \"none\"); return sum(y * y);"),
    ("huber", "return nn.huber(w, exp(w), delta: 0.5) + nn.huber(x, x * x * x, reduction: \"sum\");"),
    ("huber_error", "let y = nn.huber(x, x * x, delta: 0.2, reduction: \"none\"); return sum(y * y);"),
    (
        "bce_logits",
        "let p = sigmoid(w * w); return nn.bce_logits(w * 3.0, p) + nn.bce_logits(w, p, pos_weight: 2.5) \
         + nn.bce_logits(w, p, pos_weight: exp(w[0, 0]), reduction: \"sum\");",
    ),
    (
        "bce_error",
        "let y = nn.bce_logits(x, sigmoid(x * 2.0), pos_weight: exp(x[0]), reduction: \"none\"); return sum(y * y);",
    ),
    (
        "kl",
        "let (p, q) = (nn.softmax(x * 2.0), nn.log_softmax(x * x)); return nn.kl(q, p) \
         + nn.kl(q, p, reduction: \"batchmean\") + nn.kl(x, x * x, log_target: true, reduction: \"sum\");",
    ),
    ("kl_term", "let y = nn.kl(x, sigmoid(x), reduction: \"none\"); return sum(y * y);"),
    ("log_kl_term", "let y = nn.kl(x, x * x, log_target: true, reduction: \"none\"); return sum(y * y);"),
    (
        "moments_of",
        "let y = nn.layer_norm(x, w[0, .., 0]) * x; let z = nn.rms_norm(x); \
         let g = grad(sum(y * y) + sum(z * x * x), wrt: x); let h = grad(sum(sin(g)), wrt: x); return sum(h * h);",
    ),
    (
        "cross_entropy",
        "let p = w[0, .., 0] * w[0, .., 0] + 0.5; \
         let y = nn.cross_entropy(x, i32([0, 2, 1, 2]), weights: p, ignore: 1, smoothing: 0.1); \
         let g = grad(sum(y * y), wrt: x); let h = grad(sum(sin(g)), wrt: x); return sum(h * h);",
    ),
    (
        "layer_norm",
        "let y = nn.layer_norm(x, w[0, .., 0], w[1, .., 0]); let z = nn.layer_norm(w * 2.0, axes: 2, eps: 0.1); \
         return sum(y * y * x) + sum(z * z * z);",
    ),
    (
        "layer_norm",
        "let z = concat(list i in 0..25 { x * (0.1 * i + 0.5) }, axis: 1); \
         let gain = concat(list i in 0..5 { w[0].flatten() * (0.1 * i + 0.5) }, axis: 0); \
         let y = nn.layer_norm(z, gain, gain * gain); let u = nn.layer_norm(z, eps: 0.01); \
         return sum(y * y * y) / 100.0 + sum(u * u * z) / 100.0;",
    ),
    (
        "layer_norm",
        "let z = concat(list i in 0..40 { x[.., 0..2] * (0.1 * i + 0.5) + 0.1 * i }, axis: 0); \
         let y = nn.layer_norm(z, bias: x[0, 0..2] * x[1, 0..2], eps: 0.1); return sum(y * y * y) / 10.0;",
    ),
    (
        "rms_norm",
        "let z = concat(list i in 0..25 { x * (0.1 * i + 0.5) }, axis: 1); \
         let gain = concat(list i in 0..5 { w[0].flatten() * (0.1 * i + 0.5) }, axis: 0); \
         let y = nn.rms_norm(z, gain); let u = nn.rms_norm(w, eps: 0.01); \
         return sum(y * y * y) / 100.0 + sum(u * u * w);",
    ),
    (
        "attention",
        "let y = nn.attention(w, w * w, exp(w)); let z = nn.attention(w, w, w, causal: true, scale: 1.5); \
         return sum(y * y) + sum(z * z * z);",
    ),
    (
        "attention",
        "let y = nn.attention(w, w[.., 0..1], w[.., 0..1] * 2.0, mask: x[0..3, 0..2].expand(1)); \
         return sum(y * y);",
    ),
    (
        "attention",
        "let q = concat(list i in 0..24 { x[0..3].expand(1) * (0.1 * i - 1.0) }, axis: 0); \
         let keys = q[.., 0, 0] > -0.5; let y = nn.attention(q, q * 2.0, q * q, mask: keys, causal: true); \
         return sum(y * y);",
    ),
    (
        "conv",
        "let (i, k) = (x.reshape([1, 2, 3, 2]), w.flatten()[0..24].reshape([2, 2, 2, 3])); \
         let y = nn.conv(i, k, pad: [1, 0, 2, 1], stride: [1, 2], dilation: [2, 1]); return sum(y * y * y);",
    ),
    (
        "conv",
        "let y = nn.conv(x.reshape([2, 6, 1]), w.flatten()[0..12].reshape([3, 1, 4]), pad: \"same\", stride: 2); \
         let k = w.flatten()[0..16].reshape([2, 2, 1, 2, 2]); \
         let z = nn.conv(x.reshape([1, 2, 3, 1, 2]), k, pad: [0, 1, 1], groups: 1); \
         let u = nn.conv(x.reshape([1, 2, 3, 2]), k.reshape([2, 2, 1, 4])[.., .., .., 0..2], pad: 1, groups: 2); \
         return sum(y * y * y) + sum(z * z) + sum(u * u * u);",
    ),
    (
        "conv_transpose",
        "let (i, k) = (x.reshape([1, 2, 3, 2]), w.flatten()[0..24].reshape([2, 2, 2, 3])); \
         let y = nn.conv_transpose(i, k, pad: [1, 0, 1, 1], stride: [3, 2], out_pad: [2, 0]); \
         let z = nn.conv_transpose(i, k[.., .., .., 0..1], groups: 2, pad: \"same\", stride: 2); \
         return sum(y * y * y) + sum(z * z * z);",
    ),
    (
        "max_pool",
        "let y = nn.max_pool(x.reshape([1, 4, 3, 1]), [3, 2], stride: [1, 2], pad: [1, 0]); \
         let z = nn.max_pool(w.reshape([2, 15, 1]), 4); return sum(y * y * y) + sum(z * z);",
    ),
    (
        "avg_pool",
        "let i = x.reshape([1, 4, 3, 1]); let y = nn.avg_pool(i, 2, stride: 1, pad: 1, count_pad: false); \
         let z = nn.avg_pool(i, [3, 2], pad: [1, 0], stride: 2); return sum(y * y * y) + sum(z * z * z);",
    ),
    ("sum_pool", "let y = pool.sum_pool(w.reshape([2, 5, 3, 1]), [2, 3], stride: 1, pad: 1); return sum(y * y * y);"),
    (
        "global_avg_pool",
        "let y = nn.global_avg_pool(w); let z = nn.global_max_pool(w); return sum(y * y * y) + sum(z * z);",
    ),
    ("global_max_pool", "let z = nn.global_max_pool(x.reshape([1, 2, 2, 3])); return sum(z * z * z);"),
    ("batch_norm", "let y = nn.batch_norm(x, w[0, .., 0], w[1, .., 1]); return sum(y * y * y);"),
    (
        "batch_norm",
        "let v = x[1] * x[1] + 1.0; let y = nn.batch_norm(x, mean: x[0], variance: v, training: false); \
         return sum(y * y * y);",
    ),
    ("group_norm", "let y = nn.group_norm(w.permute([0, 2, 1]), 3, x[0], x[1], eps: 0.1); return sum(y * y * y);"),
    ("group_norm", "let y = nn.group_norm(x.reshape([1, 2, 1, 6]), 2); return sum(y * y * y * x.flatten()[0]);"),
    ("instance_norm", "let y = nn.instance_norm(w, eps: 0.1); return sum(y * y * y);"),
    ("pad", "let y = nn.pad(x, [1, 0, 0, 2], value: 2); return sum(y * y * y);"),
    ("flip", "let y = nn.flip(x, [0, -1]) * x; return sum(y * y);"),
    ("roll", "let y = nn.roll(x, -1, axis: 1) * nn.roll(x, 6); return sum(y * y);"),
    ("split", "let y = nn.split(w, [1, 4], axis: 2); return sum(y[0] * y[0]) + sum(y[1] * y[1] * y[1]);"),
    ("stack", "let y = nn.stack([x, x * x], axis: 1); return sum(y * y * y);"),
    ("upsample", "let y = nn.upsample(w, 3) * nn.upsample(w * w, 3); return sum(y * y);"),
    ("embedding", "let y = nn.embedding(x, i32([[2, 0], [2, 3]])); return sum(y * y * y);"),
    (
        "clip_by_value",
        "let y = optim.clip_by_value((a: x * 2.0, n: 3, b: [w]), 0.6); return sum(y.a * y.a) + sum(y.b[0] * w);",
    ),
    (
        "clip_by_norm",
        "let y = optim.clip_by_norm((a: x * 2.0, b: [w]), 0.5); return sum(y.a * y.a * x) + sum(y.b[0] * w);",
    ),
    ("clip_by_norm", "let y = optim.clip_by_norm([x * 2.0], 100.0); return sum(y[0] * y[0] * x);"),
    ("dropout", "let y = random.dropout(x * x, 0.4, seed: u32([7, 0]), site: 3); return sum(y * y);"),
    ("dropped", "let y = random.dropped(x * x, 0.6, random.key(5), 9); return sum(y * y * x);"),
    ("global_norm", "return optim.global_norm((a: x, b: [w * w])) + optim.global_norm(x * 2.0);"),
    ("step_decay", "var k: i32; k <- 7; let y = optim.step_decay(k, x, 3, factor: 0.5); return sum(y * y);"),
    ("exponential", "var k: i32; k <- 3; let y = optim.exponential(k, x, 0.5); return sum(y * y);"),
    ("cosine", "var k: i32; k <- 3; let y = optim.cosine(k, x, 10, least: x[0, 0]); return sum(y * y);"),
    ("warmup", "var k: i32; k <- 3; let y = optim.warmup(k, x, 10); return sum(y * y);"),
    // Second derivatives.
    ("softmax_slopes", "let g = grad(sum(nn.softmax(x * 2.0) * x), wrt: x); return sum(g * g * x);"),
    (
        "softmax_slopes",
        "let z = concat(list i in 0..25 { x * (0.1 * i + 0.5) }, axis: 1); let y = nn.log_softmax(z); \
         let g = grad(sum(y * y), wrt: x); return sum(g * g) / 1000.0;",
    ),
    (
        "class_slopes",
        "let p = f64([0.5, 2.0, 1.5]); let c = i32([0, 2, 1, 2]); let z = x * x * 2.0; \
         let y = nn.cross_entropy(z, c, weights: p, ignore: 1, smoothing: 0.1, reduction: \"none\"); \
         let g = grad(nn.cross_entropy(z, c, smoothing: 0.2) * 2.0 + sum(y * y), wrt: x); return sum(g * g * x);",
    ),
    (
        "slopes_by_weights",
        "let c = i32([0, 2, 1, 2]); let p = exp(x[1] * x[0]); let g = grad(nn.cross_entropy(x, c, weights: p, \
         ignore: 1, smoothing: 0.1), wrt: (x: x, p: p)); return sum(g.x * g.x * x) + sum(g.p * g.p * x[0]);",
    ),
    (
        "weight_slopes",
        "let c = i32([0, 2, 1, 2]); let p = exp(x[1] * x[0]); \
         let g = grad(nn.nll(x * x, c, weights: p), wrt: (x: x, p: p)); \
         let h = grad(nn.nll(x, c, weights: p, reduction: \"sum\"), wrt: x); \
         return sum(g.x * h) + sum(g.p * g.p * x[0]);",
    ),
    (
        "slopes",
        "let (a, b) = (w[0, .., 0], w[1, .., 0]); let y = nn.layer_norm(x * x, a * a, b, eps: 0.1); \
         let g = grad(sum(y * y * y), wrt: (x: x, a: a, b: b)); \
         return sum(g.x * g.x) + sum(g.a * g.a * a) + sum(g.b * g.b);",
    ),
    (
        "slopes",
        "let z = concat(list i in 0..25 { x * (0.1 * i + 0.5) }, axis: 1); let y = nn.rms_norm(z, eps: 0.1); \
         let g = grad(sum(y * y * z), wrt: x); return sum(g * g) / 100.0;",
    ),
    ("mse", "let g = grad(nn.huber(x, x * x, delta: 0.5) + nn.mse(x * x, x), wrt: x); return sum(g * g);"),
    (
        "conv_input",
        "let (i, k) = (x.reshape([1, 2, 3, 2]), w.flatten()[0..24].reshape([2, 2, 2, 3])); \
         let y = nn.conv(i, k, pad: 1, stride: [1, 2]); let g = grad(sum(y * y), wrt: (i: i, k: k)); \
         return sum(g.i * g.i) + sum(g.k * g.k);",
    ),
    (
        "conv_kernel",
        "let dy = w.flatten()[0..6].reshape([1, 3, 2, 1]); \
         let d = nn.conv_kernel(x.reshape([1, 4, 3, 1]), [2, 2, 1, 1], dy); return sum(d * d);",
    ),
    (
        "transpose_input",
        "let (i, k) = (x.reshape([1, 2, 3, 2]), w.flatten()[0..24].reshape([2, 2, 2, 3])); \
         let y = nn.conv_transpose(i, k, stride: 2); let g = grad(sum(y * y), wrt: (i: i, k: k)); \
         return sum(g.i * g.i) + sum(g.k * g.k);",
    ),
    (
        "transpose_kernel",
        "let y = nn.conv_transpose(x.reshape([2, 6, 1]), w.flatten()[0..6].reshape([3, 1, 2]), stride: 2); \
         let g = grad(sum(y * y * y), wrt: (x: x, w: w)); return sum(g.x * g.x) + sum(g.w * g.w);",
    ),
    (
        "at_first",
        "let y = nn.max_pool(x.reshape([1, 4, 3, 1]), 2, stride: 1); let g = grad(sum(y * y * y), wrt: x); \
         return sum(g * g);",
    ),
    (
        "from_first",
        "let y = nn.max_pool(x.reshape([1, 12, 1]), 3, stride: 2); let g = grad(sum(y * y * y), wrt: x); \
         return sum(grad(sum(g * g), wrt: x) * x);",
    ),
    (
        "over_windows",
        "let y = nn.avg_pool(x.reshape([1, 12, 1]), 3, stride: 2); let g = grad(sum(y * y * y), wrt: x); \
         return sum(g * g);",
    ),
    (
        "normalised_columns",
        "let y = nn.batch_norm(x, w[0, .., 0], eps: 0.1); let g = grad(sum(y * y * y), wrt: x); return sum(g * g);",
    ),
    (
        "attention",
        "let y = nn.attention(w, w * w, exp(w), causal: true); let g = grad(sum(y * y), wrt: w); \
         return sum(g * g * w);",
    ),
];

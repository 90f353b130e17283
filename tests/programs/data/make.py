"""Makes the arrays of programs in the folder above. NumPy computes what they have to compute."""

import math

import numpy as np

rng = np.random.default_rng(7)


def random(*shape):
    return (rng.standard_normal(shape) * 0.4).astype(np.float32)


def save(name, **arrays):
    single = {k: a.astype(np.float32) if a.dtype == np.float64 else a for k, a in arrays.items()}
    np.savez(name, **single)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def poisson(side):
    n = side * side
    a = np.zeros((n, n))
    for r in range(n):
        for c in range(n):
            if r == c:
                a[r, c] = 4
            elif (abs(c - r) == 1 and c // side == r // side) or abs(c - r) == side:
                a[r, c] = -1
    np.save("cg.npy", np.linalg.solve(a, np.ones(n)).astype(np.float32))


def fourier():
    i = np.arange(64)
    f = np.fft.fft((i * 7 % 11) + 1j * (i * 5 % 13 - 6))
    np.save("fft.npy", np.stack([f.real, f.imag]).astype(np.float32))


def norm(x):
    c = x - x.mean(1, keepdims=True)
    return c / np.sqrt((c * c).mean(1, keepdims=True) + 1e-5)


def softmax(x):
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def transformer(t, d, heads):
    x, wq, wk, wv, wo = random(t, d), random(d, d), random(d, d), random(d, d), random(d, d)
    w1, w2 = random(d, 4 * d), random(4 * d, d)
    size = d // heads
    a = norm(x.astype(float))
    q, k, v = a @ wq, a @ wk, a @ wv
    parts = []
    for h in range(heads):
        part = slice(h * size, (h + 1) * size)
        scores = q[:, part] @ k[:, part].T / math.sqrt(size)
        scores = np.where(np.tril(np.ones((t, t))) > 0, scores, -1e9)
        parts.append(softmax(scores) @ v[:, part])
    h = x.astype(float) + np.concatenate(parts, 1) @ wo
    a = norm(h) @ w1
    gelu = a * 0.5 * (1 + np.vectorize(math.erf)(a / math.sqrt(2)))
    save("block.npz", x=x, wq=wq, wk=wk, wv=wv, wo=wo, w1=w1, w2=w2, y=h + gelu @ w2)


def lstm(steps, batch, inputs, hidden):
    x, w = random(steps, batch, inputs), random(inputs, 4 * hidden)
    u, b = random(hidden, 4 * hidden), random(4 * hidden)
    h, c, y = np.zeros((batch, hidden)), np.zeros((batch, hidden)), []
    for t in range(steps):
        gates = x[t].astype(float) @ w + b + h @ u
        i, f, g, o = (gates[:, k * hidden : (k + 1) * hidden] for k in range(4))
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        y.append(h)
    save("lstm.npz", x=x, w=w, u=u, b=b, y=np.array(y))


def embedding(words, width):
    table, target = random(words, width), random(4, 5, width)
    tokens = rng.integers(0, words, (4, 5)).astype(np.int32)
    tokens[0, :3] = 7
    trained = table.astype(float)
    for _ in range(3):
        np.add.at(trained, tokens, -0.1 * (trained[tokens] - target))
    save("embedding.npz", table=table, tokens=tokens, target=target, trained=trained)


def clusters():
    x = np.concatenate([rng.standard_normal((20, 2)) + c for c in ((0, 0), (6, 1), (2, 7))])
    x = x.astype(np.float32)
    start = x[[1, 25, 50]].copy()
    centres = start.astype(float)
    for turn in range(11):
        classes = ((x[:, None] - centres) ** 2).sum(2).argmin(1)
        if turn < 10:
            centres = np.array([x[classes == k].mean(0) for k in range(3)])
    save("kmeans.npz", x=x, start=start, centres=centres, classes=classes.astype(np.int32))


def convolutions():
    r = np.random.default_rng(7)
    shapes = dict(k1=(3, 3, 1, 4), c1=(4,), k2=(3, 3, 4, 6), c2=(6,), w1=(54, 7), b1=(7,), w2=(7, 4), b2=(4,))
    start = {k: (0.3 * r.standard_normal(s)).astype(np.float32) for k, s in shapes.items()}
    images = r.random((3, 10, 10, 1)).astype(np.float32)
    classes = r.integers(0, 4, 3).astype(np.int32)
    taps = [(i, j) for i in range(3) for j in range(3)]

    def window(x, i, j):
        return x[:, i:i + x.shape[1] - 2, j:j + x.shape[2] - 2]

    p = {k: v.astype(float) for k, v in start.items()}
    m, v = ({k: np.zeros_like(w) for k, w in p.items()} for _ in range(2))
    losses = []
    for t in range(1, 5):
        a1 = np.maximum(sum(window(images, i, j) @ p["k1"][i, j] for i, j in taps) + p["c1"], 0)
        a2 = np.maximum(sum(window(a1, i, j) @ p["k2"][i, j] for i, j in taps) + p["c2"], 0)
        pairs = a2.reshape(3, 3, 2, 3, 2, 6)
        pooled = pairs.max((2, 4), keepdims=True)
        f = pooled.reshape(3, 54)
        h = np.maximum(f @ p["w1"] + p["b1"], 0)
        logits = h @ p["w2"] + p["b2"]
        e = np.exp(logits)
        d = e / e.sum(1, keepdims=True)
        losses.append(-np.log(d[np.arange(3), classes]).mean())
        d[np.arange(3), classes] -= 1
        d /= 3
        dh = d @ p["w2"].T * (h > 0)
        df = (dh @ p["w1"].T).reshape(pooled.shape)
        d2 = (df * (pairs == pooled)).reshape(a2.shape) * (a2 > 0)
        d1 = np.zeros_like(a1)
        for i, j in taps:
            window(d1, i, j)[...] += d2 @ p["k2"][i, j].T
        d1 *= a1 > 0
        g = dict(w1=f.T @ dh, b1=dh.sum(0), w2=h.T @ d, b2=d.sum(0), c1=d1.sum((0, 1, 2)), c2=d2.sum((0, 1, 2)))
        kernel = "bhwc,bhwd->cd"
        g["k1"] = np.array([np.einsum(kernel, window(images, i, j), d1) for i, j in taps]).reshape(p["k1"].shape)
        g["k2"] = np.array([np.einsum(kernel, window(a1, i, j), d2) for i, j in taps]).reshape(p["k2"].shape)
        for k in p:
            m[k], v[k] = 0.9 * m[k] + 0.1 * g[k], 0.999 * v[k] + 0.001 * g[k] ** 2
            a, b = m[k] / (1 - 0.9 ** t), v[k] / (1 - 0.999 ** t)
            p[k] -= 0.01 * (a / (np.sqrt(b) + 1e-8) + 0.01 * p[k])
    save("cnn.npz", images=images, classes=classes, losses=np.array(losses, np.float32), **start)


def optimisers():
    """Ten steps of each optimiser of `stdlib/optim.gir`, by the formulas that PyTorch documents (LAMB and LARS: those of
    their papers), in f64."""
    r = np.random.default_rng(8)
    shapes = dict(w=(13, 9), b=(9,), f=(700,))
    start = {k: (0.3 * r.standard_normal(s)).astype(np.float32) for k, s in shapes.items()}
    grads = {k: r.standard_normal((10,) + s).astype(np.float32) for k, s in shapes.items()}
    norm = np.linalg.norm

    def steps(rule, rates=None):
        p = {k: x.astype(float) for k, x in start.items()}
        slots = {k: {} for k in p}
        for t in range(1, 11):
            for k in p:
                rule(p, k, grads[k][t - 1].astype(float), slots[k], t)
        return np.concatenate([p[k].ravel() for k in shapes])

    def sgd(rate, momentum=0, dampening=0, nesterov=False, decay=0):
        def rule(p, k, g, s, t):
            g = g + decay * p[k]
            if momentum:
                s["b"] = g if t == 1 else momentum * s["b"] + (1 - dampening) * g
                g = g + momentum * s["b"] if nesterov else s["b"]
            p[k] = p[k] - rate * g
        return rule

    def moments(s, g, t, b1, b2):
        s["m"] = b1 * s.get("m", 0) + (1 - b1) * g
        s["v"] = b2 * s.get("v", 0) + (1 - b2) * g * g
        return s["m"] / (1 - b1 ** t), s["v"] / (1 - b2 ** t)

    def adam(rate=lambda t: 0.001, b1=0.9, b2=0.999, eps=1e-8, coupled=0, decay=0):
        def rule(p, k, g, s, t):
            p[k] = p[k] * (1 - rate(t) * decay)
            m, v = moments(s, g + coupled * p[k], t, b1, b2)
            p[k] = p[k] - rate(t) * m / (np.sqrt(v) + eps)
        return rule

    def rmsprop(rate=0.01, keep=0.99, eps=1e-8, decay=0, momentum=0, centred=False):
        def rule(p, k, g, s, t):
            g = g + decay * p[k]
            s["v"] = keep * s.get("v", 0) + (1 - keep) * g * g
            s["a"] = keep * s.get("a", 0) + (1 - keep) * g
            u = g / (np.sqrt(s["v"] - centred * s["a"] ** 2) + eps)
            s["b"] = momentum * s.get("b", 0) + u
            p[k] = p[k] - rate * s["b"]
        return rule

    def adagrad(rate=0.01, rate_decay=0, decay=0, first=0, eps=1e-10):
        def rule(p, k, g, s, t):
            g = g + decay * p[k]
            s["v"] = s.get("v", first) + g * g
            p[k] = p[k] - rate / (1 + (t - 1) * rate_decay) * g / (np.sqrt(s["v"]) + eps)
        return rule

    def lamb(rate, decay):
        def rule(p, k, g, s, t):
            m, v = moments(s, g, t, 0.9, 0.999)
            u = m / (np.sqrt(v) + 1e-6) + decay * p[k]
            p[k] = p[k] - rate * norm(p[k]) / norm(u) * u
        return rule

    def lars(rate, decay, momentum=0.9, trust=0.001):
        def rule(p, k, g, s, t):
            scale = trust * norm(p[k]) / (norm(g) + decay * norm(p[k]) + 1e-8)
            s["m"] = momentum * s.get("m", 0) + rate * scale * (g + decay * p[k])
            p[k] = p[k] - s["m"]
        return rule

    def cosine(t):
        return 0.0001 + 0.5 * (0.01 - 0.0001) * (1 + np.cos(np.pi * t / 10))

    results = dict(
        sgd=sgd(0.05, decay=0.1),
        momentum=sgd(0.05, momentum=0.9, decay=0.01),
        nesterov=sgd(0.05, momentum=0.8, nesterov=True),
        dampened=sgd(0.05, momentum=0.9, dampening=0.3, decay=0.01),
        adam=adam(coupled=0.1),
        adamw=adam(rate=lambda t: 0.002, b1=0.8, b2=0.99, decay=0.1),
        scheduled=adam(rate=lambda t: cosine(t - 1) * min(1, 1 / 3 + 2 / 3 * (t - 1) / 4), decay=0.01),
        rmsprop=rmsprop(decay=0.1),
        centred=rmsprop(momentum=0.5, centred=True),
        adagrad=adagrad(),
        adagrad_decay=adagrad(rate=0.1, rate_decay=0.2, decay=0.1, first=0.5),
        lamb=lamb(0.01, 0.1),
        lars=lars(1.0, 0.01),
    )
    g = [x[0].astype(float) for x in grads.values()]
    whole = np.sqrt(sum((x * x).sum() for x in g))
    clipped = np.concatenate([x.ravel() * min(1, 3 / (whole + 1e-6)) for x in g])
    save("optim.npz", norm=whole, clipped=clipped, **start, **{"d" + k: x for k, x in grads.items()},
         **{"after_" + k: steps(rule) for k, rule in results.items()})


def log_softmax(x):
    d = x - x.max(-1, keepdims=True)
    return d - np.log(np.exp(d).sum(-1, keepdims=True))


def softmax(x):
    return np.exp(log_softmax(x))


def class_loss(x, y, w=None, ignore=None, eps=0.0):
    """The losses of rows and their weights, as PyTorch defines them."""
    logs, n = log_softmax(x), x.shape[-1]
    w = np.ones(n) if w is None else w
    counts = np.ones(len(y), bool) if ignore is None else y != ignore
    y = np.where(counts, y, 0)
    rows = np.arange(len(y))
    each = -(1 - eps) * w[y] * logs[rows, y] - eps / n * (logs * w).sum(-1)
    # The derivative of the sum.
    d = ((1 - eps) * w[y] + eps / n * w.sum())[:, None] * np.exp(logs) - eps / n * w
    d[rows, y] -= (1 - eps) * w[y]
    return each * counts, w[y] * counts, d * counts[:, None]


def losses():
    """Rows of 7 elements are one vertex, those of 70 are cut into blocks, whose sums those of 1100 combine twice."""
    arrays = {}
    for m, n, scale, shift in [(6, 7, 3, 0), (5, 70, 20, 1000), (2, 1100, 3, -50)]:
        x = (rng.standard_normal((m, n)) * scale + shift).astype(np.float32)
        y = rng.integers(0, n, m).astype(np.int32)
        y[1] = 2
        w = rng.uniform(0.5, 2, n).astype(np.float32)
        arrays |= {f"x{n}": x, f"y{n}": y, f"w{n}": w}
        x, w = x.astype(float), w.astype(float)
        arrays |= {f"softmax{n}": softmax(x), f"logs{n}": log_softmax(x)}
        each, _, d = class_loss(x, y)
        arrays |= {f"each{n}": each, f"plain{n}": each.mean(), f"d_plain{n}": d / m}
        each, share, d = class_loss(x, y, w, 2, 0.1)
        arrays |= {f"all{n}": each.sum() / share.sum(), f"d_all{n}": d / share.sum()}
        each, share, d = class_loss(x, y, None, 2, 0.3)
        arrays |= {f"smooth{n}": each.sum() / share.sum(), f"d_smooth{n}": d / share.sum()}
        each, _, d = class_loss(x, y, w, 2)
        arrays |= {f"total{n}": each.sum(), f"d_total{n}": d}
    a, b = random(9, 37), random(9, 37)
    p = softmax(random(9, 37).astype(float)).astype(np.float32)
    k = rng.uniform(0.5, 3, 37).astype(np.float32)
    p[2, 3] = 0
    arrays |= {"a": a, "b": b, "p": p, "k": k}
    a, b, p, k = (v.astype(float) for v in (a, b, p, k))
    r = np.abs(a - b)
    bce = (1 - p) * a + (1 + (k - 1) * p) * np.log1p(np.exp(-a))
    kl = np.where(p > 0, p * (np.log(np.where(p > 0, p, 1)) - a), 0)
    save("losses.npz", **arrays, mse=(r * r).mean(), l1=r.mean(), sum_l1=r.sum(),
         huber=np.where(r < 0.3, r * r / 2, 0.3 * (r - 0.15)).mean(), each_huber=np.where(r < 1, r * r / 2, r - 0.5),
         bce=np.mean(np.log1p(np.exp(a)) - p * a), bce_weighted=bce.mean(), kl=kl.mean(), kl_batch=kl.sum() / 9,
         kl_logs=(np.exp(b) * (b - a)).mean())


def norms():
    arrays = {}
    for m, n in [(4, 12), (3, 70), (2, 1100)]:
        x = (rng.standard_normal((m, n)) * 2 + 30).astype(np.float32)
        gain, bias, dy = random(n), random(n), random(m, n)
        arrays |= {f"x{n}": x, f"gain{n}": gain, f"bias{n}": bias, f"dy{n}": dy}
        x, gain, bias, dy = (v.astype(float) for v in (x, gain, bias, dy))
        for name, mean in [("layer", x.mean(-1, keepdims=True)), ("rms", 0.0)]:
            eps = 1e-5 if name == "layer" else np.finfo(np.float32).eps
            r = 1 / np.sqrt(((x - mean) ** 2).mean(-1, keepdims=True) + eps)
            u, v = (x - mean) * r, dy * gain
            less = v.mean(-1, keepdims=True) if name == "layer" else 0.0
            dx = r * (v - less - u * (v * u).mean(-1, keepdims=True))
            arrays |= {f"{name}{n}": u * gain + (bias if name == "layer" else 0), f"d_{name}{n}": dx,
                       f"d_{name}_gain{n}": (dy * u).sum(0)}
        arrays |= {f"d_bias{n}": dy.sum(0)}
    save("norms.npz", **arrays)


def attentions():
    b, t, s, heads, groups, d = 2, 5, 7, 4, 2, 6
    q, k, v = random(b, t, heads, d) * 3, random(b, s, heads, d) * 3, random(b, s, heads, d)
    few, long = random(b, s, groups, d) * 3, random(1, 70, 2, 3) * 4
    mask = rng.random((b, 1, t, s)) < 0.6
    mask[0, 0, 2] = False
    bias = random(heads, t, s)

    def attention(q, k, v, keys=True, bias=0.0, scale=None):
        q, k, v = (x.astype(float).transpose(0, 2, 1, 3) for x in (q, k, v))
        scores = q @ k.transpose(0, 1, 3, 2) * (scale or 1 / np.sqrt(q.shape[-1])) + bias
        scores = np.where(keys, scores, -1e30)
        p = np.exp(scores - scores.max(-1, keepdims=True)) * np.broadcast_to(keys, scores.shape)
        return (p / np.maximum(p.sum(-1, keepdims=True), 1e-300) @ v).transpose(0, 2, 1, 3)

    repeated = np.repeat(few, heads // groups, axis=2)
    save("attention.npz", q=q, k=k, v=v, few=few, long=long, mask=mask, bias=bias,
         plain=attention(q, k, v), causal=attention(q, k, v, np.tril(np.ones((t, s), bool))),
         masked=attention(q, k, v, mask), biased=attention(q, k, v, bias=bias, scale=0.25),
         both=attention(q, k, v, mask & np.tril(np.ones((t, s), bool))), grouped=attention(q, repeated, repeated),
         long_causal=attention(long, long, long, np.tril(np.ones((70, 70), bool))))


poisson(6)
fourier()
transformer(12, 16, 4)
lstm(7, 3, 5, 8)
embedding(50, 6)
clusters()
convolutions()
optimisers()
losses()
norms()
attentions()

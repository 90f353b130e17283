"""The loss of `transformer.gir` and its derivative, in NumPy."""
import math

import numpy as np

batch, length, width, heads, symbols, rate = 8, 64, 128, 4, 128, 0.001
erf = np.vectorize(math.erf)
later = np.triu(np.ones((length, length), bool), 1)
scale = 1 / math.sqrt(width // heads)


def dense(net, name, x):
    return x @ net[name + ".w"] + net[name + ".b"]


def dense_back(net, g, name, x, dy):
    g[name + ".w"], g[name + ".b"] = np.einsum("bti,btj->ij", x, dy), dy.sum(axis=(0, 1))
    return dy @ net[name + ".w"].T


def norm(net, name, x):
    """Layer normalisation, and what its derivative needs."""
    centred = x - x.mean(axis=-1, keepdims=True)
    r = 1 / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-5)
    return centred * r * net[name + ".gain"] + net[name + ".bias"], (centred * r, r)


def norm_back(net, g, name, kept, dy):
    u, r = kept
    g[name + ".gain"], g[name + ".bias"] = (dy * u).sum(axis=(0, 1)), dy.sum(axis=(0, 1))
    du = dy * net[name + ".gain"]
    return r * (du - du.mean(axis=-1, keepdims=True) - u * (du * u).mean(axis=-1, keepdims=True))


def split(x):
    return x.reshape(batch, length, heads, -1).transpose(0, 2, 1, 3)


def join(x):
    return x.transpose(0, 2, 1, 3).reshape(batch, length, width)


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def attention(net, name, x):
    q, k, v = (split(part) for part in np.split(dense(net, name + ".attention.qkv", x), 3, axis=-1))
    p = softmax(np.where(later, -np.inf, q @ k.swapaxes(2, 3) * scale))
    y = join(p @ v)
    return dense(net, name + ".attention.o", y), (x, q, k, v, p, y)


def attention_back(net, g, name, kept, dy):
    x, q, k, v, p, y = kept
    dy = split(dense_back(net, g, name + ".attention.o", y, dy))
    dp = dy @ v.swapaxes(2, 3)
    ds = p * (dp - (dp * p).sum(axis=-1, keepdims=True)) * scale
    parts = [join(d) for d in (ds @ k, ds.swapaxes(2, 3) @ q, p.swapaxes(2, 3) @ dy)]
    return dense_back(net, g, name + ".attention.qkv", x, np.concatenate(parts, axis=-1))


def below(x):
    """The probability that a standard normal number is less."""
    return 0.5 * (1 + erf(x / math.sqrt(2)))


def loss_and_gradients(net, window):
    """The mean cross entropy of the characters after each position of `[batch, length + 1]` characters."""
    character, target = window[:, :-1], window[:, 1:]
    x, kept, g = net["net.symbols.table"][character] + net["net.positions.table"], [], {}
    for name in ("net.blocks.0", "net.blocks.1"):
        u, first = norm(net, name + ".before", x)
        y, attended = attention(net, name, u)
        x = x + y
        u, second = norm(net, name + ".after", x)
        a = dense(net, name + ".up", u)
        s = below(a)
        x = x + dense(net, name + ".down", a * s)
        kept.append((name, first, attended, u, second, a, s))
    u, last = norm(net, "net.norm", x)
    p = softmax(dense(net, "net.out", u))
    loss = -np.log(np.take_along_axis(p, target[..., None], 2)).mean()
    d = dense_back(net, g, "net.out", u, (p - np.eye(symbols)[target]) / target.size)
    dx = norm_back(net, g, "net.norm", last, d)
    for name, first, attended, u, second, a, s in reversed(kept):
        slope = s + a * np.exp(-a * a / 2) / math.sqrt(2 * math.pi)
        da = dense_back(net, g, name + ".down", a * s, dx) * slope
        dx = dx + norm_back(net, g, name + ".after", second, dense_back(net, g, name + ".up", u, da))
        dx = dx + norm_back(net, g, name + ".before", first, attention_back(net, g, name, attended, dx))
    g["net.positions.table"], g["net.symbols.table"] = dx.sum(axis=0), np.zeros_like(net["net.symbols.table"])
    np.add.at(g["net.symbols.table"], character, dx)
    return loss, g

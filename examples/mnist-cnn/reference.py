"""Trains the network of mnist-cnn.gir in NumPy (f64), without dropout, from the same initial values on the same images:

    girder run examples/mnist-cnn train --arg steps=0 --save initial.npz
    python examples/mnist-cnn/reference.py initial.npz

writes the losses of `--arg steps=10 --arg drop=0.0` to expected.npz. A convolution is a product of windows side by
side, so that it shares no code and no order of sums with the library.
"""
import sys
from pathlib import Path

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

here = Path(__file__).parent
BATCH, STEPS, SEED = 40, 10, 1


def order(seed, passed, rows):
    """The order of the rows of a stream with `shuffle: seed`: that of keys from Philox 4x32-10."""
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    r, p = np.arange(rows, dtype=np.uint64), np.full(rows, passed, np.uint64)
    c, k = [r & low, r >> half, p & low, p >> half], [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        a, b = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [(b >> half) ^ c[1] ^ np.uint64(k[0]), b & low, (a >> half) ^ c[3] ^ np.uint64(k[1]), a & low]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return np.argsort(c[1] << half | c[0], kind="stable")


def windows(x, size):
    """Windows of `size` by `size` of images `[b, h, w, c]`, as `[b, h', w', size, size, c]`."""
    return np.moveaxis(sliding_window_view(x, (size, size), axis=(1, 2)), 3, 5)


def conv(x, k):
    return np.tensordot(windows(x, k.shape[0]), k, axes=3)


def conv_gradients(x, k, dy):
    """The derivatives of `conv` by its two operands."""
    size = k.shape[0]
    dk = np.tensordot(windows(x, size), dy, axes=([0, 1, 2], [0, 1, 2]))
    wide = np.pad(dy, ((0, 0), (size - 1,) * 2, (size - 1,) * 2, (0, 0)))
    return conv(wide, np.swapaxes(k[::-1, ::-1], 2, 3)), dk


def step(net, x, classes):
    """The loss of a batch, and its gradient by the parameters."""
    k1, c1, k2, c2, w1, b1, w2, b2 = net
    a1 = np.maximum(conv(x, k1) + c1, 0)
    a2 = np.maximum(conv(a1, k2) + c2, 0)
    n, h, w, c = a2.shape
    pairs = a2.reshape(n, h // 2, 2, w // 2, 2, c).transpose(0, 1, 3, 5, 2, 4).reshape(n, h // 2, w // 2, c, 4)
    first = pairs.argmax(axis=4)[..., None]
    f = np.take_along_axis(pairs, first, axis=4).reshape(n, -1)
    z = np.maximum(f @ w1 + b1, 0)
    y = z @ w2 + b2
    e = np.exp(y - y.max(axis=1, keepdims=True))
    p = e / e.sum(axis=1, keepdims=True)
    loss = -np.log(p[np.arange(n), classes]).mean()
    d = (p - np.eye(10)[classes]) / n
    dz = (d @ w2.T) * (z > 0)
    dpairs = np.zeros_like(pairs)
    np.put_along_axis(dpairs, first, (dz @ w1.T).reshape(first.shape), axis=4)
    d2 = dpairs.reshape(n, h // 2, w // 2, c, 2, 2).transpose(0, 1, 4, 2, 5, 3).reshape(a2.shape) * (a2 > 0)
    da1, dk2 = conv_gradients(a1, k2, d2)
    d1 = da1 * (a1 > 0)
    dk1 = conv_gradients(x, k1, d1)[1]
    images = (0, 1, 2)
    return loss, [dk1, d1.sum(images), dk2, d2.sum(images), f.T @ dz, dz.sum(0), z.T @ d, d.sum(0)]


def main(initial):
    data, first = np.load(here / "../mnist/mnist.npz"), np.load(initial)
    net = [first[f"net.layers.{k}.{name}"].astype(float) for k in (0, 2, 7, 10) for name in "wb"]
    m, v = ([np.zeros_like(p) for p in net] for _ in range(2))
    rows, losses = order(SEED, 0, len(data["train_images"])), []
    for t in range(STEPS):
        at = rows[t * BATCH:(t + 1) * BATCH]
        x = data["train_images"][at].reshape(BATCH, 28, 28, 1) / 255.0
        loss, gradient = step(net, x, data["train_labels"][at].astype(int))
        losses.append(loss)
        rate = 0.001 * (1 + np.cos(np.pi * t / STEPS)) / 2
        for p, g, m1, v1 in zip(net, gradient, m, v):
            p *= 1 - rate * 0.01
            m1 += 0.1 * (g - m1)
            v1 += 0.001 * (g * g - v1)
            p -= rate / (1 - 0.9 ** (t + 1)) * m1 / (np.sqrt(v1 / (1 - 0.999 ** (t + 1))) + 1e-8)
    print(losses)
    np.savez(here / "expected.npz", losses=np.array(losses))


if __name__ == "__main__":
    main(sys.argv[1])

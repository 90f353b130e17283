"""Trains the network of fashion.gir in NumPy (f64) from the same initial values on the same images:

    girder run examples/fashion train --arg steps=0 --save initial.npz
    python examples/fashion/reference.py initial.npz

writes the losses of `train --arg epochs=1 --arg steps=10` to expected.npz. A convolution is a sum of products, one for
each tap of the window, so that it shares no code with the library.
"""
import gzip
import importlib.util
import sys
from pathlib import Path

import numpy as np

here = Path(__file__).parent
DATA = Path("/usr/share/datasets/fashion-mnist")
BATCH, STEPS, SEED, RATE, MOMENTUM, DECAY = 100, 10, 1, 0.1, 0.9, 0.0005
# The order of a stream with `shuffle`.
spec = importlib.util.spec_from_file_location("cnn", here / "../mnist-cnn/reference.py")
cnn = importlib.util.module_from_spec(spec)
spec.loader.exec_module(cnn)


def idx(name, head):
    return np.frombuffer(gzip.decompress((DATA / name).read_bytes()), np.uint8, offset=head)


class Network:
    """The values and derivatives of a step. A layer returns its output and a function from the derivative by the output
    to that by the input, which notes the derivatives by the parameters."""

    def __init__(self, params):
        self.params, self.gradients = params, {}

    def conv(self, x, name, stride):
        k = self.params[name]
        size, pad = k.shape[0], k.shape[0] // 2
        wide = np.pad(x, ((0, 0), (pad, pad), (pad, pad), (0, 0)))
        out = (wide.shape[1] - size) // stride + 1
        end = (out - 1) * stride + 1
        taps = [(r, s, np.s_[:, r:r + end:stride, s:s + end:stride]) for r in range(size) for s in range(size)]

        def back(dy):
            dx, dk = np.zeros_like(wide), np.zeros_like(k)
            for r, s, at in taps:
                dx[at] += dy @ k[r, s].T
                dk[r, s] = np.tensordot(wide[at], dy, axes=([0, 1, 2], [0, 1, 2]))
            self.gradients[name] = dk
            return dx[:, pad:wide.shape[1] - pad, pad:wide.shape[2] - pad]

        return sum(wide[at] @ k[r, s] for r, s, at in taps), back

    def norm(self, x, name):
        gain, bias = self.params[name + ".gain"], self.params[name + ".bias"]
        every = (0, 1, 2)
        r = 1 / np.sqrt(x.var(every) + 1e-5)
        u = (x - x.mean(every)) * r

        def back(dy):
            self.gradients[name + ".gain"], self.gradients[name + ".bias"] = (dy * u).sum(every), dy.sum(every)
            return gain * r * (dy - dy.mean(every) - u * (dy * u).mean(every))

        return u * gain + bias, back

    def conv_norm(self, x, name, stride=1):
        y, conv = self.conv(x, name + ".layers.0.w", stride)
        z, norm = self.norm(y, name + ".layers.1")
        return z, lambda dz: conv(norm(dz))

    def residual(self, x, name, stride):
        a, first = self.conv_norm(x, name + ".first", stride)
        b, second = self.conv_norm(np.maximum(a, 0), name + ".second")
        c, along = self.conv_norm(x, name + ".along", stride)

        def back(dy):
            d = dy * (b + c > 0)
            return first(second(d) * (a > 0)) + along(d)

        return np.maximum(b + c, 0), back

    def loss(self, x, classes):
        a, stem = self.conv_norm(x, "net.layers.0")
        h, blocks = np.maximum(a, 0), []
        for k in (2, 3):
            h, back = self.residual(h, f"net.layers.{k}", 2)
            blocks.append(back)
        w, b = self.params["net.layers.5.w"], self.params["net.layers.5.b"]
        pooled = h.mean((1, 2))
        y = pooled @ w + b
        e = np.exp(y - y.max(axis=1, keepdims=True))
        p = e / e.sum(axis=1, keepdims=True)
        n = np.arange(len(x))
        d = p.copy()
        d[n, classes] -= 1
        d /= len(x)
        self.gradients["net.layers.5.w"], self.gradients["net.layers.5.b"] = pooled.T @ d, d.sum(0)
        dh = np.broadcast_to((d @ w.T)[:, None, None] / (h.shape[1] * h.shape[2]), h.shape)
        for back in reversed(blocks):
            dh = back(dh)
        stem(dh * (a > 0))
        return -np.log(p[n, classes]).mean()


def main(initial):
    first = np.load(initial)
    kinds = ("w", "b", "gain", "bias")
    names = [name for name in first.files if name.startswith("net.") and name.split(".")[-1] in kinds]
    net = Network({name: first[name].astype(float) for name in names})
    slots = {name: np.zeros_like(p) for name, p in net.params.items()}
    images = idx("train-images-idx3-ubyte.gz", 16).reshape(-1, 28, 28, 1)
    labels = idx("train-labels-idx1-ubyte.gz", 8)
    rows, losses = cnn.order(SEED, 0, len(images)), []
    for t in range(STEPS):
        at = rows[t * BATCH:(t + 1) * BATCH]
        losses.append(net.loss(images[at] / 255.0, labels[at].astype(int)))
        rate = RATE * (1 + np.cos(np.pi * t / STEPS)) / 2
        for name, p in net.params.items():
            d = net.gradients[name] + DECAY * p
            slots[name] = MOMENTUM * slots[name] + d
            p -= rate * (d + MOMENTUM * slots[name])
    print(losses)
    np.savez(here / "expected.npz", losses=np.array(losses))


if __name__ == "__main__":
    main(sys.argv[1])

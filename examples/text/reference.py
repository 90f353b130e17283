"""Trains the models of `lstm.gir` and `transformer.gir` in NumPy (f64) from the same initial values:

    girder run examples/text/lstm.gir --arg steps=0 --save lstm.npz
    girder run examples/text/transformer.gir --arg steps=0 --save transformer.npz
    python examples/text/reference.py lstm.npz transformer.npz

writes the losses of the first 20 steps of both to expected.npz. The derivatives are written by hand.
"""
import sys
from pathlib import Path

import lstm
import numpy as np
import transformer

here = Path(__file__).parent
text = np.load(here / "text.npz")["text"].astype(int)


def adam(net, gradients, slots, step, rate, b1=0.9, b2=0.999, eps=1e-8):
    """Kingma and Ba, "Adam: a method for stochastic optimization", 2015, algorithm 1."""
    for name, p in net.items():
        m, v = slots[name]
        m += (1 - b1) * (gradients[name] - m)
        v += (1 - b2) * (gradients[name] ** 2 - v)
        p -= rate / (1 - b1 ** (step + 1)) * m / (np.sqrt(v / (1 - b2 ** (step + 1))) + eps)


def train(model, file, steps=20):
    """Returns the loss of each step before its update."""
    net = {k: v.astype(float) for k, v in np.load(file).items() if k.startswith("net.")}
    slots = {k: (np.zeros_like(p), np.zeros_like(p)) for k, p in net.items()}
    window, losses = (model.batch, model.length + 1), []
    for step in range(steps):
        at = np.arange(step * window[0] * window[1], (step + 1) * window[0] * window[1]) % len(text)
        loss, gradients = model.loss_and_gradients(net, text[at].reshape(window))
        adam(net, gradients, slots, step, model.rate)
        losses.append(loss)
    return np.array(losses)


np.savez(here / "expected.npz", lstm=train(lstm, sys.argv[1]), transformer=train(transformer, sys.argv[2]))

"""Trains the network of fashion.gir in PyTorch (f64), from the same initial values:

    girder run examples/fashion train --arg steps=0 --save initial.npz
    python examples/fashion/reference.py initial.npz

writes the losses of `--arg steps=5` to expected.npz, and the running statistics of the first normalisation after them.
The images are the digits of `examples/mnist`, because these are in the repository: the tests feed the same ones.
"""
import importlib.util
import sys
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

here = Path(__file__).parent
spec = importlib.util.spec_from_file_location("reference", here / "../mnist-cnn/reference.py")
digits = importlib.util.module_from_spec(spec)
spec.loader.exec_module(digits)
BATCH, STEPS, SEED = 60, 5, 1

data = np.load(here / "../mnist/mnist.npz")
first = np.load(sys.argv[1])
net = {name: torch.from_numpy(first[name].astype(float)) for name in first.files if name.startswith("net.")}
learned = [name for name in net if name.rsplit(".", 1)[1] in ("w", "b", "gain", "bias")]
for name in learned:
    net[name].requires_grad_()


def normalised_conv(x, name, stride=1):
    w = net[f"{name}.layers.0.w"]
    y = F.conv2d(x, w.permute(3, 2, 0, 1), stride=stride, padding=(w.shape[0] - 1) // 2)
    norm = f"{name}.layers.1"
    gain, bias = net[f"{norm}.gain"], net[f"{norm}.bias"]
    mean, variance = net[f"{norm}.apply.mean"], net[f"{norm}.apply.variance"]
    return F.batch_norm(y, mean, variance, gain, bias, training=True)


def block(x, name, stride=1):
    long = normalised_conv(x, f"{name}.long.layers.0", stride)
    long = normalised_conv(F.relu(long), f"{name}.long.layers.2")
    short = x if stride == 1 else normalised_conv(x, f"{name}.short.layers.0", stride)
    return F.relu(long + short)


def network(x):
    h = F.relu(normalised_conv(x, "net.layers.0"))
    for layer, stride in ((2, 1), (3, 2), (4, 2)):
        h = block(h, f"net.layers.{layer}", stride)
    return h.mean(dim=(2, 3)) @ net["net.layers.6.w"] + net["net.layers.6.b"]


optimiser = torch.optim.AdamW([net[name] for name in learned])
rows, losses = digits.order(SEED, 0, len(data["train_images"])), []
for step in range(STEPS):
    at = rows[step * BATCH:(step + 1) * BATCH]
    x = torch.from_numpy(data["train_images"][at].reshape(BATCH, 1, 28, 28) / 255.0)
    loss = F.cross_entropy(network(x), torch.from_numpy(data["train_labels"][at].astype(np.int64)))
    optimiser.param_groups[0]["lr"] = 0.003 * (1 + np.cos(np.pi * step / STEPS)) / 2
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    losses.append(loss.item())
print(losses)
np.savez(here / "expected.npz", losses=np.array(losses), mean=net["net.layers.0.layers.1.apply.mean"].numpy(),
         variance=net["net.layers.0.layers.1.apply.variance"].numpy())

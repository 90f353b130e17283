"""The loss of `lstm.gir` and its derivative, in NumPy."""
import numpy as np

batch, length, width, symbols, rate = 32, 20, 128, 128, 0.003


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def loss_and_gradients(net, window):
    """The mean cross entropy of the characters after each position of `[batch, length + 1]` characters."""
    x, target = window[:, :-1].T, window[:, 1:].T
    embedded = net["net.symbols.table"][x]
    z = embedded @ net["net.input.w"] + net["net.input.b"]
    h, c, gates, candidates = [np.zeros((batch, width))], [np.zeros((batch, width))], [], []
    for t in range(length):
        a = (z[t] + h[t] @ net["net.state.w"]).reshape(batch, 4, width)
        gates.append(sigmoid(a[:, :3]))
        candidates.append(np.tanh(a[:, 3]))
        c.append(gates[t][:, 0] * c[t] + gates[t][:, 1] * candidates[t])
        h.append(gates[t][:, 2] * np.tanh(c[-1]))
    y = np.array(h[1:])
    logits = y @ net["net.out.w"] + net["net.out.b"]
    e = np.exp(logits - logits.max(axis=2, keepdims=True))
    p = e / e.sum(axis=2, keepdims=True)
    loss = -np.log(np.take_along_axis(p, target[..., None], 2)).mean()
    d = (p - np.eye(symbols)[target]) / target.size
    g = {"net.out.w": np.einsum("tbi,tbj->ij", y, d), "net.out.b": d.sum(axis=(0, 1))}
    dy, dz = d @ net["net.out.w"].T, np.zeros_like(z)
    dh, dc = np.zeros((batch, width)), np.zeros((batch, width))
    for t in reversed(range(length)):
        gate, candidate, squashed = gates[t], candidates[t], np.tanh(c[t + 1])
        dh = dh + dy[t]
        dc = dc + dh * gate[:, 2] * (1 - squashed**2)
        dgate = np.stack([dc * c[t], dc * candidate, dh * squashed], axis=1) * gate * (1 - gate)
        dcandidate = dc * gate[:, 1] * (1 - candidate**2)
        dz[t] = np.concatenate([dgate, dcandidate[:, None]], axis=1).reshape(batch, 4 * width)
        dc = dc * gate[:, 0]
        dh = dz[t] @ net["net.state.w"].T
    g["net.state.w"] = np.einsum("tbi,tbj->ij", np.array(h[:-1]), dz)
    g["net.input.w"] = np.einsum("tbi,tbj->ij", embedded, dz)
    g["net.input.b"] = dz.sum(axis=(0, 1))
    g["net.symbols.table"] = np.zeros_like(net["net.symbols.table"])
    np.add.at(g["net.symbols.table"], x, dz @ net["net.input.w"].T)
    return loss, g

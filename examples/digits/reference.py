"""Trains the same model in NumPy (f32), prints the accuracy and writes the weights to expected.npz."""
import numpy as np

data = np.load("digits.npz")
x = data["images"].reshape(1797, 64).astype(np.float32) / np.float32(16)
classes = data["labels"].astype(int)
train, test = slice(0, 1437), slice(1437, 1797)
target = np.eye(10, dtype=np.float32)[classes[train]]
w, b = np.zeros((64, 10), np.float32), np.zeros(10, np.float32)
rate = np.float32(2.0)
for _ in range(500):
    logits = x[train] @ w + b
    e = np.exp(logits - logits.max(axis=1, keepdims=True))
    d = (e / e.sum(axis=1, keepdims=True) - target) / np.float32(1437)
    w -= rate * (x[train].T @ d)
    b -= rate * d.sum(axis=0)
np.savez("expected.npz", w=w, b=b)
print("test accuracy", (np.argmax(x[test] @ w + b, axis=1) == classes[test]).mean())

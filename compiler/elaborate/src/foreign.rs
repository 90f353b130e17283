//! Names that NumPy, PyTorch and JAX give to what is written otherwise here.

/// Returns the help for a function that stands alone.
pub fn function(name: &str) -> Option<&'static str> {
    Some(match name {
        "empty" => "a declaration makes a tensor: `var x: f32[2, 3];`",
        "ones" | "full" => {
            "a declaration makes a tensor of one number: `const one: f32[2, 3] = 1;`, or `var` to write it"
        }
        "zeros_like" | "empty_like" => "a tensor of zeros is `zeros(shape: x.shape, T: x.type)`",
        "ones_like" | "full_like" => "a declaration makes a tensor of one number: `const one: f32[..x.shape] = 1;`",
        "arange" => "a range is `0..n`, or `0..n by 2`; as a tensor it is `i32(list(0..n))`",
        "linspace" => "n numbers from 0 to 1 are `f32(list i in 0..n { float(i) / (n - 1) })`",
        "eye" | "identity" => "the matrix is `f32(list i in 0..n { list j in 0..n { if i == j { 1 } else { 0 } } })`",
        "tril" | "triu" => {
            "multiply by the matrix `f32(list i in 0..n { list j in 0..n { if j <= i { 1 } else { 0 } } })`"
        }
        "clip" => "numbers are limited by `clamp(x, lo, hi)`",
        "relu6" => "it is `clamp(x, 0.0, 6.0)`",
        "hardtanh" => "it is `clamp(x, -1.0, 1.0)`",
        "take_along_axis" | "take_along_dim" => "it is `take_along(x, index, axis: 1)`",
        "prod" => "it is `product(x)`",
        "amax" | "amin" => "it is `max(x, axis: 0)` or `min(x, axis: 0)`",
        "cat" | "concatenate" | "hstack" | "vstack" => {
            "tensors are joined by `concat([x, y], axis: 0)`, and along a new axis by `nn.stack([x, y])`"
        }
        "outer" => "it is `x.expand(1) * y`",
        "einsum" | "tensordot" => "it is written with `x @ y`, whose leading axes broadcast, `permute` and `sum`",
        "stop_gradient" | "detach" | "no_grad" => "`stopped(x)` is `x` as a constant",
        "value_and_grad" | "vjp" | "backward" | "jacobian" | "hessian" => {
            "compute the loss first: `grad(loss, wrt: w)` is its gradient by `w`"
        }
        "jit" | "vmap" | "pmap" => "no function is transformed: a batch is an axis of a tensor, and all is compiled",
        "rand" | "randn" | "randint" => {
            "random numbers are drawn by functions such as `random.normal([3, 4], seed: 1)`"
        }
        _ => return None,
    })
}

/// Returns the help for a view or a member of a tensor.
pub fn of_tensor(name: &str) -> Option<&'static str> {
    Some(match name {
        "T" | "t" | "mT" => "it is `x.transpose()`, which reverses the axes",
        "unsqueeze" | "expand_dims" | "newaxis" => "`x.expand(0)` puts an axis of length 1 before the first",
        "astype" | "to" | "float" | "int" | "double" => "a type converts: `f32(x)`",
        "view" => "it is `x.reshape([2, 3])`",
        "ravel" => "it is `x.flatten()`",
        "swapaxes" | "moveaxis" | "movedim" => "`x.permute([0, 2, 1])` has the axes in this order",
        "repeat" | "tile" => "`x.broadcast(3, axis: 0)` repeats an axis",
        "clone" => "it is `copy(x)`",
        "detach" => "`stopped(x)` is `x` as a constant",
        "backward" | "grad" => "`grad(loss, wrt: w)` is the gradient of a loss by `w`",
        "item" | "tolist" | "numpy" | "cpu" => "the host sees what a program prints or writes to an `out` stream",
        "ndim" => "it is `x.rank`",
        "size" | "numel" => "all elements are `x.len`, and those along the axes `x.shape`",
        "dtype" => "it is `x.type`",
        "matmul" | "mm" | "bmm" => "it is `x @ y`",
        _ => return None,
    })
}

/// Returns the help for a member of a layer.
pub fn of_layer(name: &str) -> Option<&'static str> {
    Some(match name {
        "forward" | "call" | "__call__" => "it is `net.apply(x)`, and `net.train(x)` in training",
        "parameters" | "weights" | "trainable_variables" => "they are `params(net)`",
        "state_dict" | "save" => "the host saves all params and states by `--save file.npz`",
        _ => return None,
    })
}

/// Returns the help for a name of a module of the library.
pub fn of_module(module: &str, name: &str) -> Option<&'static str> {
    Some(match (module, name) {
        ("nn", "linear" | "Linear") => "it is `nn.dense(m, n)`",
        ("nn", "conv1d" | "conv2d" | "conv3d") => "it is `nn.conv(x, k)`, of one to three spatial axes",
        ("nn", "Conv1d" | "Conv2d" | "Conv3d") => "it is `nn.conv_layer([3, 3], c, n)`",
        ("nn", "mse_loss" | "MSELoss") => "it is `nn.mse(x, y)`",
        ("nn", "l1_loss" | "L1Loss") => "it is `nn.l1(x, y)`",
        ("nn", "smooth_l1_loss" | "huber_loss") => "it is `nn.huber(x, y)`",
        ("nn", "nll_loss" | "NLLLoss") => "it is `nn.nll(logs, class)`",
        ("nn", "kl_div" | "KLDivLoss") => "it is `nn.kl(x, y)`",
        ("nn", "bce" | "binary_cross_entropy" | "binary_cross_entropy_with_logits" | "BCEWithLogitsLoss") => {
            "it is `nn.bce_logits(x, y)`, of logits"
        }
        ("nn", "CrossEntropyLoss") => "it is `nn.cross_entropy(logits, class)`",
        ("nn", "dropout" | "Dropout") => {
            "it is `random.dropout(x, 0.1, seed: 1)`, and as a layer `nn.dropout_layer(0.1, seed: 1)`"
        }
        ("nn", "LayerNorm" | "RMSNorm") => "it is `nn.norm(n)`, or `nn.norm(n, kind: \"rms\")`",
        ("nn", "BatchNorm1d" | "BatchNorm2d" | "BatchNorm3d") => "it is `nn.batch_norm_layer(n)`",
        ("nn", "Embedding") => "it is `nn.embedding_layer(n, d)`",
        ("nn", "MultiheadAttention") => "it is `nn.attention_layer(d, heads)`",
        ("optim", "step" | "zero_grad") => {
            "an optimiser is a function that makes one step: `optim.adam(net, grad(loss, wrt: net))`"
        }
        ("random", "randn") => "it is `random.normal([3, 4], seed: 1)`",
        ("random", "rand" | "random") => "it is `random.uniform([3, 4], seed: 1)`",
        ("random", "randint") => "it is `random.integers([3, 4], lo: 0, hi: 10, seed: 1)`",
        ("random", "shuffle") => "rows in a random order are `gather(x, random.permutation(n, seed: 1))`",
        ("random", "seed" | "PRNGKey" | "manual_seed") => "each call has a seed: `random.normal([3, 4], seed: 1)`",
        _ => return None,
    })
}

/// Returns the name that a parameter has here.
pub fn parameter(name: &str) -> Option<&'static str> {
    Some(match name {
        "dim" | "dims" => "axis",
        "keepdims" | "keepdim" => "keep",
        "lr" | "learning_rate" | "p" => "rate",
        "weight_decay" => "decay",
        "beta1" => "b1",
        "beta2" => "b2",
        "alpha" => "keep",
        "dtype" => "T",
        "ddof" => "correction",
        "label_smoothing" => "smoothing",
        "ignore_index" => "ignore",
        "weight" => "weights",
        "padding" => "pad",
        "output_padding" => "out_pad",
        "kernel_size" => "size",
        "num_heads" => "heads",
        "attn_mask" => "mask",
        "is_causal" => "causal",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_other_libraries_are_known() {
        assert!(function("concatenate").is_some_and(|help| help.contains("concat(")));
        assert!(of_tensor("T").is_some_and(|help| help.contains("transpose()")));
        assert!(of_module("nn", "Linear").is_some_and(|help| help.contains("nn.dense")));
        assert_eq!(of_module("optim", "Linear"), None);
        assert_eq!(parameter("keepdims"), Some("keep"));
        assert_eq!(parameter("axis"), None);
    }
}

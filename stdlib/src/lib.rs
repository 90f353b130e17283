//! The standard library in `.gir`, embedded. The crate has no logic: the modules are the files of its folder.

/// The names and texts of all modules. The names of `prelude` need no `use`.
pub const MODULES: [(&str, &str); 35] = [
    ("prelude", include_str!("../prelude.gir")),
    ("linalg", include_str!("../linalg.gir")),
    ("reduce", include_str!("../reduce.gir")),
    ("products", include_str!("../products.gir")),
    ("scans", include_str!("../scans.gir")),
    ("rows", include_str!("../rows.gir")),
    ("slices", include_str!("../slices.gir")),
    ("sorting", include_str!("../sorting.gir")),
    ("math", include_str!("../math.gir")),
    ("nn", include_str!("../nn.gir")),
    ("blocks", include_str!("../blocks.gir")),
    ("softmax", include_str!("../softmax.gir")),
    ("norm", include_str!("../norm.gir")),
    ("loss", include_str!("../loss.gir")),
    ("class_loss", include_str!("../class_loss.gir")),
    ("embedding", include_str!("../embedding.gir")),
    ("layers", include_str!("../layers.gir")),
    ("recurrent", include_str!("../recurrent.gir")),
    ("attention", include_str!("../attention.gir")),
    ("conv", include_str!("../conv.gir")),
    ("window", include_str!("../window.gir")),
    ("kernels", include_str!("../kernels.gir")),
    ("depthwise", include_str!("../depthwise.gir")),
    ("dilated", include_str!("../dilated.gir")),
    ("pool", include_str!("../pool.gir")),
    ("batch_norm", include_str!("../batch_norm.gir")),
    ("shape", include_str!("../shape.gir")),
    ("random", include_str!("../random.gir")),
    ("optim", include_str!("../optim.gir")),
    ("updates", include_str!("../updates.gir")),
    ("clipping", include_str!("../clipping.gir")),
    ("schedules", include_str!("../schedules.gir")),
    ("stages", include_str!("../stages.gir")),
    ("chains", include_str!("../chains.gir")),
    ("collectives", include_str!("../collectives.gir")),
];

/// Returns the text of a module.
pub fn module(name: &str) -> Option<&'static str> {
    MODULES.iter().find(|(n, _)| *n == name).map(|(_, text)| *text)
}

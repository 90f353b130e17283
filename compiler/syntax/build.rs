//! Generates the parser from `src/grammar.lalrpop`.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    lalrpop::Configuration::new()
        .emit_comments(false)
        .emit_whitespace(false)
        .emit_rerun_directives(true)
        .process_dir("src")
        .map_err(|e| e.to_string().into())
}

//! `createAgentFromTemplate`: the prompts.

use serde_json::Value;

/// The prompt of a template whose input was checked.
pub fn prompt(template: &str, params: &Value) -> String {
    let list = |name: &str| {
        params[name]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(|item| format!("- {item}\n"))
            .collect::<String>()
    };
    let text = |name: &str| params[name].as_str().map(str::trim);
    let flag = |name: &str| params[name].as_bool().unwrap_or(false);
    match template {
        "docAudit" => {
            let mut prompt = format!(
                "Audit the documentation in:\n{}\nCompare each statement with the code: commands, options, names, defaults, examples, links. \
                 Fix what is wrong or out of date, add what readers need and cannot find, and remove what no longer exists. \
                 Run the examples where possible. Change documentation only; report bugs you find in the code, but do not fix them.\n",
                list("docPaths")
            );
            if let Some(guidelines) = text("guidelines") {
                prompt.push_str(&format!("\nGuidelines:\n{guidelines}\n"));
            }
            prompt
        }
        "typeCleanup" => {
            let mut prompt = "Improve the types of this code base: replace `any` and its equivalents, needless casts and suppressed type \
                              errors with precise types, and remove duplicate or unused ones. Do not change behaviour; the type checker and the \
                              tests must pass at the end.\n"
                .to_owned();
            if flag("strictMode") {
                prompt
                    .push_str("\nTurn on the type checker's strict mode and fix what it finds.\n");
            }
            let dirs = list("includeDirs");
            if !dirs.is_empty() {
                prompt.push_str(&format!("\nOnly in these directories:\n{dirs}"));
            }
            prompt
        }
        _ => {
            let area = text("area").unwrap_or_default();
            let mut prompt = format!(
                "Find the bug in this area and fix it: {area}\n\nFirst reproduce it with a failing test, then find its cause, fix the cause rather \
                 than the symptom, and look for the same mistake elsewhere. The whole test suite must pass at the end. Explain the cause in the \
                 summary.\n"
            );
            if flag("flaky") {
                prompt.push_str(
                    "\nIt is intermittent: run the tests for this area repeatedly and under load, look for races, timing, ordering and shared \
                     state, and show with repeated runs that it is gone. Do not use retries or longer timeouts as the fix.\n",
                );
            }
            prompt
        }
    }
}

//! The models of the CLI, as `agent models` lists them.

/// A model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Model {
    /// What `--model` takes.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// The CLI uses it when none is named.
    pub current: bool,
}

/// Reads lines such as `gpt-5 - GPT-5 (default)`. Everything else around them is skipped.
pub fn parse(printed: &str) -> Vec<Model> {
    let mut models: Vec<Model> = Vec::new();
    // Weakest first: the mark of the current model beats that of the default one.
    let mut best = 0;
    for line in printed.lines() {
        let Some((id, name, mark)) = parse_line(line) else {
            continue;
        };
        if models.iter().any(|model| model.id == id) {
            continue;
        }
        if mark > best {
            best = mark;
            for model in &mut models {
                model.current = false;
            }
        }
        models.push(Model {
            id: id.to_owned(),
            name,
            current: mark > 0 && mark == best,
        });
    }
    models
}

/// The id, the name, and how much it is marked as the one in use: 1 default, 2 current.
fn parse_line(line: &str) -> Option<(&str, String, u8)> {
    let line = line
        .trim()
        .trim_start_matches(['*', '>', '•', '✓', '→', '●', '○', '❯'])
        .trim_start();
    let (id, rest) = line.split_once(char::is_whitespace)?;
    let rest = rest.trim_start();
    let name = rest
        .strip_prefix("- ")
        .or_else(|| rest.strip_prefix("– "))?;
    let fits = |char: char| char.is_ascii_alphanumeric() || "._-/:[]=,+@".contains(char);
    if id.ends_with(':') || !id.chars().all(fits) || !id.chars().any(char::is_alphanumeric) {
        return None;
    }
    let mut name = name.trim();
    let mut mark = 0;
    // "(current, default)", or one after the other.
    while let Some((before, words)) = name
        .strip_suffix(')')
        .and_then(|rest| rest.rsplit_once('('))
    {
        let weigh = |word: &str| match word.trim().to_lowercase().as_str() {
            "default" => Some(1),
            "current" | "selected" | "active" => Some(2),
            _ => None,
        };
        let Some(weights) = words
            .split([',', '/'])
            .map(weigh)
            .collect::<Option<Vec<u8>>>()
        else {
            break;
        };
        mark = weights.into_iter().fold(mark, u8::max);
        name = before.trim_end();
    }
    let name = if name.is_empty() { id } else { name };
    Some((id, name.to_owned(), mark))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(printed: &str) -> Vec<(String, String, bool)> {
        let models = parse(printed);
        models
            .into_iter()
            .map(|model| (model.id, model.name, model.current))
            .collect()
    }

    fn entry(id: &str, name: &str, current: bool) -> (String, String, bool) {
        (id.to_owned(), name.to_owned(), current)
    }

    #[test]
    fn the_list_is_read_around_its_decoration() {
        let printed = "Available models\n\n\
            auto - Auto (current)\n\
            composer-2.5 - Composer 2.5 (default)\n\
            gpt-5[reasoning=high] - GPT-5 (high)\n\
            auto - Auto\n\
            Tip: use --model <id> (or /model <id> in interactive mode) to switch.\n";
        assert_eq!(
            list(printed),
            [
                entry("auto", "Auto", true),
                entry("composer-2.5", "Composer 2.5", false),
                entry("gpt-5[reasoning=high]", "GPT-5 (high)", false),
            ]
        );
    }

    #[test]
    fn marks_come_in_several_forms() {
        assert_eq!(
            list("a - A (default)\n* b - B (current, default)"),
            [entry("a", "A", false), entry("b", "B", true)]
        );
        assert_eq!(list("a - A (default) (current)"), [entry("a", "A", true)]);
        assert_eq!(list("a - (default)"), [entry("a", "a", true)]);
    }

    #[test]
    fn what_is_no_model_is_skipped() {
        for printed in [
            "",
            "No models available for this account.",
            "Error: - x",
            "- x",
            "--- - a",
        ] {
            assert_eq!(list(printed), [], "{printed}");
        }
    }
}

//! What a scenario may leave open: `${session}`, `${cwd}`, `${prompt}`, `${request_id}`, `${n}`.

use serde_json::Value;

#[derive(Debug, Clone, Default)]
pub struct Vars {
    pub session: String,
    /// The session's directory, the process's own without a session.
    pub cwd: String,
    /// The text of the client's prompt.
    pub prompt: String,
    /// The id of the client's request, as it came.
    pub request_id: Value,
    /// Counts chunks and repetitions, from 0.
    pub n: u64,
}

impl Vars {
    /// A string that is a variable and nothing else takes the variable's type: a numeric id stays a number.
    pub fn fill(&self, value: &Value) -> Value {
        match value {
            Value::String(text) if text == "${request_id}" => self.request_id.clone(),
            Value::String(text) => Value::String(self.fill_text(text)),
            Value::Array(items) => items.iter().map(|item| self.fill(item)).collect(),
            Value::Object(fields) => fields
                .iter()
                .map(|(key, value)| (key.clone(), self.fill(value)))
                .collect(),
            other => other.clone(),
        }
    }

    pub fn fill_text(&self, text: &str) -> String {
        let mut filled = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            filled.push_str(before);
            let variable = after.split_once('}').and_then(|(name, after)| {
                let value = self.get(name)?;
                rest = after;
                Some(value)
            });
            match variable {
                Some(value) => filled.push_str(&value),
                None => {
                    // Not one of ours: a shell's variable in a command, say.
                    filled.push_str("${");
                    rest = after;
                }
            }
        }
        filled.push_str(rest);
        filled
    }

    fn get(&self, name: &str) -> Option<String> {
        Some(match name {
            "session" => self.session.clone(),
            "cwd" => self.cwd.clone(),
            "prompt" => self.prompt.clone(),
            "request_id" => self.request_id.to_string(),
            "n" => self.n.to_string(),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn variables_are_filled_in_everywhere() {
        let vars = Vars {
            session: "s".to_owned(),
            cwd: "/p".to_owned(),
            prompt: "say ${n}".to_owned(),
            request_id: json!(7),
            n: 3,
        };
        let open = json!({ "a": ["${cwd}/x", "${n}/${n}"], "id": "${request_id}", "b": "${prompt} ${HOME} ${" });
        let filled = json!({ "a": ["/p/x", "3/3"], "id": 7, "b": "say ${n} ${HOME} ${" });
        assert_eq!(vars.fill(&open), filled);
    }
}

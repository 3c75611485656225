//! Validates an input against its schema, and says which field is wrong and why, without repeating its value.

use base64::Engine;
use cloud::Image;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{ValidationError, Validator};
use serde_json::{Map, Value};

use crate::failure::Wrong;

/// How many faults are reported at once.
const MOST_TOLD: usize = 5;

/// A schema ready to check with. None for one that cannot be read, which no tool has.
pub fn validator(schema: &Value) -> Option<Validator> {
    jsonschema::validator_for(schema).ok()
}

/// Puts the schema's defaults where the input has nothing.
pub fn fill(schema: &Value, input: &mut Map<String, Value>) {
    let Some(properties) = schema["properties"].as_object() else {
        return;
    };
    for (name, inner) in properties {
        match input.get_mut(name) {
            None => {
                if let Some(default) = inner.get("default") {
                    input.insert(name.clone(), default.clone());
                }
            }
            Some(Value::Object(fields)) => fill(inner, fields),
            Some(_) => {}
        }
    }
}

/// What is wrong, the first faults only.
pub fn check(validator: &Validator, input: &Value) -> Vec<Wrong> {
    let mut wrong: Vec<Wrong> = Vec::new();
    for error in validator.iter_errors(input) {
        for one in explain(&error) {
            // A blank text breaks two rules.
            if !wrong.iter().any(|known| known.field == one.field) {
                wrong.push(one);
            }
        }
    }
    wrong.truncate(MOST_TOLD);
    wrong
}

fn explain(error: &ValidationError<'_>) -> Vec<Wrong> {
    let at = path(error.instance_path().as_str());
    let inside = |name: &str| {
        if at.is_empty() {
            name.to_owned()
        } else {
            format!("{at}.{name}")
        }
    };
    let one = |field: String, why: String| vec![Wrong { field, why }];
    match error.kind() {
        ValidationErrorKind::Required { property } => one(
            inside(property.as_str().unwrap_or_default()),
            "is required".to_owned(),
        ),
        ValidationErrorKind::AdditionalProperties { unexpected } => unexpected
            .iter()
            .map(|name| Wrong {
                // A name can be as long as the sender likes, and a secret in the wrong place.
                field: inside(&name.chars().take(64).collect::<String>()),
                why: "is not a field of this input".to_owned(),
            })
            .collect(),
        kind => one(at, reason(kind)),
    }
}

fn reason(kind: &ValidationErrorKind) -> String {
    let many = |limit: u64, what: &str| {
        if limit == 1 {
            format!("1 {what}")
        } else {
            format!("{limit} {what}s")
        }
    };
    match kind {
        ValidationErrorKind::Type { kind } => match kind {
            TypeKind::Single(kind) => format!("must be {}", with_article(&kind.to_string())),
            TypeKind::Multiple(_) => "has the wrong type".to_owned(),
        },
        ValidationErrorKind::MinLength { limit: 1 } => "cannot be empty".to_owned(),
        ValidationErrorKind::Pattern { pattern } if pattern == "\\S" => {
            "cannot be empty".to_owned()
        }
        ValidationErrorKind::MinLength { limit } => {
            format!("must have at least {}", many(*limit, "character"))
        }
        ValidationErrorKind::MaxLength { limit } => {
            format!("must have at most {}", many(*limit, "character"))
        }
        ValidationErrorKind::MinItems { limit } => {
            format!("must have at least {}", many(*limit, "item"))
        }
        ValidationErrorKind::MaxItems { limit } => {
            format!("must have at most {}", many(*limit, "item"))
        }
        ValidationErrorKind::Minimum { limit } => format!("must be at least {limit}"),
        ValidationErrorKind::Maximum { limit } => format!("must be at most {limit}"),
        ValidationErrorKind::Enum { options } => match options.as_array() {
            Some(options) => {
                let each: Vec<&str> = options.iter().filter_map(Value::as_str).collect();
                format!("must be one of {}", each.join(", "))
            }
            None => "is not one of the allowed values".to_owned(),
        },
        ValidationErrorKind::Pattern { pattern } if pattern.starts_with("^https?://") => {
            "must be a full URL that begins with https:// or http://".to_owned()
        }
        ValidationErrorKind::Pattern { pattern } => {
            format!("has characters that are not allowed; it must match {pattern}")
        }
        other => format!("breaks the rule `{}` of the schema", other.keyword()),
    }
}

fn with_article(kind: &str) -> String {
    let article = if kind.starts_with(['a', 'i', 'o']) {
        "an"
    } else {
        "a"
    };
    format!("{article} {kind}")
}

/// `/prompt/images/0/data` as `prompt.images[0].data`.
fn path(pointer: &str) -> String {
    let mut path = String::new();
    for part in pointer.split('/').skip(1) {
        if !path.is_empty() && !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()) {
            path.push_str(&format!("[{part}]"));
        } else {
            if !path.is_empty() {
                path.push('.');
            }
            path.push_str(part);
        }
    }
    path
}

/// The type of an image in base64, by its first bytes. One that is not known is the API's to judge.
///
/// # Errors
/// Why it is none.
pub fn image_type(data: &str) -> Result<&'static str, &'static str> {
    let bytes = base64::engine::general_purpose::STANDARD
        .decode(data)
        .map_err(|_| "must be base64, without a `data:` prefix")?;
    Ok(Image::type_of(&bytes).unwrap_or("image/png"))
}

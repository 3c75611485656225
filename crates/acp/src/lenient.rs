//! Reads values as agents really send them: by move, field by field, losing nothing that does not fit.
//!
//! A type takes the fields it knows out of the object and keeps the rest. A field of the wrong type stays in the
//! rest as well, so it is still there for the log and for whoever knows better.

use serde::Serialize;
use serde_json::Value;

/// A JSON object, in wire order.
pub type Object = serde_json::Map<String, Value>;

/// What can be read out of a JSON value. The value comes back when it cannot.
pub trait FromValue: Sized {
    /// Takes the value apart; strings and lists move, they are not copied.
    ///
    /// # Errors
    /// The value itself, when it has not even what this type cannot do without.
    fn from_value(value: Value) -> Result<Self, Value>;
}

/// A value of a kind this crate does not know, whole.
#[derive(Debug, Clone, PartialEq)]
pub struct Unknown {
    /// What it calls itself; empty when it does not say.
    pub kind: String,
    /// All of it.
    pub raw: Value,
}

impl Serialize for Unknown {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.raw.serialize(serializer)
    }
}

/// A field of an update: absent and null mean different things there.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Patch<T> {
    /// Not mentioned: unchanged.
    #[default]
    Keep,
    /// Null: it is taken away.
    Clear,
    /// The new value.
    Set(T),
}

/// Taking fields out of an object.
pub(crate) trait Fields {
    /// The field, if it is present and fits. Null counts as absent.
    fn take<T: FromValue>(&mut self, key: &str) -> Option<T>;

    /// The field, with null told from absent.
    fn patch<T: FromValue>(&mut self, key: &str) -> Patch<T>;

    /// Whether a capability is present: an object or `true`. Absent, null and `false` mean no.
    fn supports(&mut self, key: &str) -> bool;

    /// The field, or the type's default.
    fn take_or_default<T: FromValue + Default>(&mut self, key: &str) -> T {
        self.take(key).unwrap_or_default()
    }

    /// The first of several names for one field that fits.
    fn take_any<T: FromValue>(&mut self, keys: &[&str]) -> Option<T> {
        keys.iter().find_map(|key| self.take(key))
    }

    /// `_meta`.
    fn meta(&mut self) -> Option<Object> {
        self.take("_meta")
    }
}

impl Fields for Object {
    fn take<T: FromValue>(&mut self, key: &str) -> Option<T> {
        match self.patch(key) {
            Patch::Set(value) => Some(value),
            Patch::Keep | Patch::Clear => None,
        }
    }

    fn patch<T: FromValue>(&mut self, key: &str) -> Patch<T> {
        let Some(value) = self.remove(key) else {
            return Patch::Keep;
        };
        if value.is_null() {
            return Patch::Clear;
        }
        match T::from_value(value) {
            Ok(value) => Patch::Set(value),
            Err(value) => {
                self.insert(key.to_owned(), value);
                Patch::Keep
            }
        }
    }

    fn supports(&mut self, key: &str) -> bool {
        match self.get(key) {
            None => false,
            // What it says about itself stays readable in the rest.
            Some(Value::Object(object)) if !object.is_empty() => true,
            Some(value) => {
                let yes = matches!(value, Value::Object(_) | Value::Bool(true));
                self.remove(key);
                yes
            }
        }
    }
}

impl FromValue for Value {
    fn from_value(value: Value) -> Result<Self, Value> {
        Ok(value)
    }
}

impl FromValue for Object {
    fn from_value(value: Value) -> Result<Self, Value> {
        match value {
            Value::Object(object) => Ok(object),
            other => Err(other),
        }
    }
}

impl FromValue for String {
    fn from_value(value: Value) -> Result<Self, Value> {
        match value {
            Value::String(text) => Ok(text),
            other => Err(other),
        }
    }
}

impl FromValue for bool {
    fn from_value(value: Value) -> Result<Self, Value> {
        value.as_bool().ok_or(value)
    }
}

impl FromValue for f64 {
    fn from_value(value: Value) -> Result<Self, Value> {
        value.as_f64().ok_or(value)
    }
}

impl FromValue for i64 {
    fn from_value(value: Value) -> Result<Self, Value> {
        value
            .as_i64()
            .or_else(|| whole(value.as_f64()?))
            .ok_or(value)
    }
}

impl FromValue for u64 {
    fn from_value(value: Value) -> Result<Self, Value> {
        let number = value.as_u64();
        number
            .or_else(|| u64::try_from(whole(value.as_f64()?)?).ok())
            .ok_or(value)
    }
}

impl FromValue for u32 {
    fn from_value(value: Value) -> Result<Self, Value> {
        match u64::from_value(value).map(Self::try_from) {
            Ok(Ok(number)) => Ok(number),
            Ok(Err(_)) => Ok(Self::MAX),
            Err(value) => Err(value),
        }
    }
}

/// A list keeps the elements that fit.
impl<T: FromValue> FromValue for Vec<T> {
    fn from_value(value: Value) -> Result<Self, Value> {
        match value {
            Value::Array(items) => Ok(items
                .into_iter()
                .filter_map(|item| T::from_value(item).ok())
                .collect()),
            other => Err(other),
        }
    }
}

/// `12.0`, as some languages write every number, is 12.
#[expect(
    clippy::cast_possible_truncation,
    reason = "checked to be whole and in range"
)]
fn whole(number: f64) -> Option<i64> {
    (number.fract() == 0.0 && number.abs() < 9e15).then_some(number as i64)
}

/// A string enum of the protocol: the values the schema has, and `Other` for any other.
#[macro_export]
macro_rules! string_enum {
    (
        $(#[$doc:meta])*
        $name:ident { $( $(#[$variant_doc:meta])* $variant:ident = $text:literal $(| $alias:literal)* ),+ $(,)? }
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        pub enum $name {
            $( $(#[$variant_doc])* $variant, )+
            /// Any other, as it was written.
            Other(String),
        }

        impl $name {
            /// The known values, as on the wire.
            pub const NAMES: &'static [&'static str] = &[$( $text ),+];

            /// As written on the wire.
            pub fn as_str(&self) -> &str {
                match self {
                    $( Self::$variant => $text, )+
                    Self::Other(text) => text,
                }
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                match text.as_str() {
                    $( $text $(| $alias)* => Self::$variant, )+
                    _ => Self::Other(text),
                }
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self::from(text.to_owned())
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                <String as serde::Deserialize>::deserialize(deserializer).map(Self::from)
            }
        }

        impl $crate::lenient::FromValue for $name {
            fn from_value(value: serde_json::Value) -> Result<Self, serde_json::Value> {
                <String as $crate::lenient::FromValue>::from_value(value).map(Self::from)
            }
        }
    };
}

/// An id the other side made up. Numbers are taken as their digits.
macro_rules! id_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default, serde::Serialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// The id's text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl<T: Into<String>> From<T> for $name {
            fn from(id: T) -> Self {
                Self(id.into())
            }
        }

        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl $crate::lenient::FromValue for $name {
            fn from_value(value: serde_json::Value) -> Result<Self, serde_json::Value> {
                match value {
                    serde_json::Value::String(id) => Ok(Self(id)),
                    serde_json::Value::Number(id) => Ok(Self(id.to_string())),
                    other => Err(other),
                }
            }
        }
    };
}

pub use string_enum;

pub(crate) use id_type;

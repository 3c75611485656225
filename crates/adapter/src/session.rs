//! A session: its settings, and the turn it is in.

use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::rc::Rc;

use acp::Object;
use acp::types::{
    ConfigCategory, ConfigChoice, ConfigKind, ConfigOption, SessionMode, SessionModes,
};
use tokio::sync::Notify;

use crate::cancel::Cancel;
use crate::models::Model;
use crate::options::Mode;
use crate::store::Meta;
use crate::todos::Todos;

/// The config option that is the mode.
pub const MODE_OPTION: &str = "mode";

/// The config option that is the model.
pub const MODEL_OPTION: &str = "model";

/// Means "whatever the CLI uses" when the list does not say what that is.
pub const DEFAULT_MODEL: &str = "default";

/// A turn under way.
#[derive(Debug)]
pub struct Turn {
    /// Stops it.
    pub cancel: Rc<Cancel>,
    over: Cell<bool>,
    ended: Notify,
}

impl Turn {
    /// One that begins.
    pub fn new(cancel: Rc<Cancel>) -> Self {
        Self {
            cancel,
            over: Cell::new(false),
            ended: Notify::new(),
        }
    }

    /// It is over.
    pub fn end(&self) {
        self.over.set(true);
        self.ended.notify_waiters();
    }

    /// Waits for its end.
    pub async fn wait(&self) {
        let mut ended = std::pin::pin!(self.ended.notified());
        ended.as_mut().enable();
        if !self.over.get() {
            ended.await;
        }
    }
}

/// A session.
#[derive(Debug)]
pub struct Session {
    /// What is kept of it.
    pub meta: RefCell<Meta>,
    /// Where it works.
    pub cwd: PathBuf,
    /// Its todos.
    pub todos: RefCell<Todos>,
    /// The turn it is in.
    pub turn: RefCell<Option<Rc<Turn>>>,
}

impl Session {
    /// One that does nothing yet.
    pub fn new(meta: Meta) -> Self {
        Self {
            cwd: PathBuf::from(&meta.cwd),
            meta: RefCell::new(meta),
            todos: RefCell::default(),
            turn: RefCell::default(),
        }
    }

    /// Its id.
    pub fn id(&self) -> String {
        self.meta.borrow().id.clone()
    }

    /// The chat to go on with.
    pub fn chat(&self) -> String {
        let meta = self.meta.borrow();
        meta.chat.clone().unwrap_or_else(|| meta.id.clone())
    }

    /// Its modes, as `session/new` tells them.
    pub fn modes(&self) -> SessionModes {
        let mode = |mode: Mode| SessionMode {
            id: mode.id().to_owned(),
            name: mode.name().to_owned(),
            description: Some(mode.description().to_owned()),
            meta: None,
        };
        SessionModes {
            current_mode_id: Some(self.meta.borrow().mode.id().to_owned()),
            available_modes: Mode::ALL.map(mode).to_vec(),
            meta: None,
        }
    }

    /// Its config options: the mode again, and the model once the list is known.
    pub fn config_options(&self, models: &[Model]) -> Vec<ConfigOption> {
        let meta = self.meta.borrow();
        let modes = Mode::ALL.map(|mode| choice(mode.id(), mode.name(), Some(mode.description())));
        let mut options = vec![select(
            MODE_OPTION,
            "Mode",
            ConfigCategory::Mode,
            meta.mode.id(),
            modes.to_vec(),
        )];
        let (current, choices) = model_choices(models, meta.model.as_deref());
        if !choices.is_empty() {
            options.push(select(
                MODEL_OPTION,
                "Model",
                ConfigCategory::Model,
                &current,
                choices,
            ));
        }
        options
    }
}

/// The model in use and those there are. One that was chosen counts as one of them, whatever the list says.
fn model_choices(models: &[Model], chosen: Option<&str>) -> (String, Vec<ConfigChoice>) {
    let mut choices: Vec<ConfigChoice> = models
        .iter()
        .map(|model| choice(&model.id, &model.name, None))
        .collect();
    let marked = models.iter().find(|model| model.current);
    if marked.is_none() && !choices.is_empty() {
        choices.insert(0, choice(DEFAULT_MODEL, "Default", None));
    }
    let current = match (chosen, marked) {
        (Some(chosen), _) => chosen,
        (None, Some(marked)) => &marked.id,
        (None, None) => DEFAULT_MODEL,
    };
    if chosen.is_some() && !choices.iter().any(|choice| choice.value == current) {
        choices.insert(0, choice(current, current, None));
    }
    (current.to_owned(), choices)
}

fn choice(value: &str, name: &str, description: Option<&str>) -> ConfigChoice {
    ConfigChoice {
        value: value.to_owned(),
        name: name.to_owned(),
        description: description.map(str::to_owned),
        group: None,
    }
}

fn select(
    id: &str,
    name: &str,
    category: ConfigCategory,
    current: &str,
    choices: Vec<ConfigChoice>,
) -> ConfigOption {
    ConfigOption {
        id: id.to_owned(),
        name: name.to_owned(),
        description: None,
        category: Some(category),
        kind: ConfigKind::Select {
            current: Some(current.to_owned()),
            choices,
        },
        meta: None,
        extra: Object::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(id: &str, current: bool) -> Model {
        Model {
            id: id.to_owned(),
            name: id.to_uppercase(),
            current,
        }
    }

    #[test]
    fn the_model_in_use_is_always_among_those_there_are() {
        let values = |models: &[Model], chosen| {
            let (current, choices) = model_choices(models, chosen);
            let values: Vec<String> = choices.into_iter().map(|choice| choice.value).collect();
            (current, values.join(" "))
        };
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        let marked = [model("a", false), model("b", true)];
        assert_eq!(values(&marked, None), pair("b", "a b"));
        assert_eq!(values(&marked, Some("a")), pair("a", "a b"));
        assert_eq!(values(&marked, Some("z")), pair("z", "z a b"));
        let unmarked = [model("a", false)];
        assert_eq!(values(&unmarked, None), pair("default", "default a"));
        assert_eq!(values(&[], None).1, "");
        assert_eq!(values(&[], Some("z")), pair("z", "z"));
    }
}

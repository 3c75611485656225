//! Modes, models and options: set by whichever way the agent offers.

use acp::message::RpcError;
use acp::methods;
use acp::types as wire;
use serde_json::Value;

use crate::agents::agent::Waiter;
use crate::agents::connect::rpc_message;
use crate::engine::Engine;
use crate::error::{Error, Setting};
use crate::ids::{AgentId, Key};
use crate::sessions::entry::Level;
use crate::sessions::session::{OptionValue, Phase, Wanted};

impl Engine {
    pub(crate) fn set_went_well(
        &mut self,
        key: Key,
        what: &str,
        id: &str,
        result: &Result<Value, RpcError>,
    ) -> bool {
        if let Err(error) = result {
            let text = format!("could not set {what} {id}: {}", rpc_message(error));
            self.add_notice(key, Level::Warning, "agent", text.clone());
            self.tell(key, "warn", text);
        }
        result.is_ok()
    }

    /// Sets the mode by whichever way the agent offers.
    pub fn set_mode(&mut self, key: Key, mode: &str) -> Result<(), Error> {
        if let Some(wanted) = self.wanted_later(key) {
            wanted.mode = Some(mode.to_owned());
            return Ok(());
        }
        let (id, session_id) = self.switchable(key)?;
        let session = self.session(key)?;
        let modes = &session.modes.available_modes;
        if modes.iter().any(|known| known.id == mode) {
            let params = wire::SetModeRequest {
                session_id,
                mode_id: mode.to_owned(),
            };
            self.request(
                id,
                methods::SESSION_SET_MODE,
                params,
                Waiter::SetMode {
                    key,
                    id: mode.to_owned(),
                },
            );
            return Ok(());
        }
        if !modes.is_empty() {
            return Err(Error::Unknown {
                what: Setting::Mode,
                name: mode.to_owned(),
                known: modes.iter().map(|known| known.id.clone()).collect(),
            });
        }
        match session
            .option_of(&wire::ConfigCategory::Mode)
            .map(|option| option.id.clone())
        {
            Some(option) => self.set_option(key, &option, &OptionValue::Text(mode.to_owned())),
            None => Err(Error::NoModes),
        }
    }

    /// Sets the model by whichever way the agent offers.
    pub fn set_model(&mut self, key: Key, model: &str) -> Result<(), Error> {
        if let Some(wanted) = self.wanted_later(key) {
            wanted.model = Some(model.to_owned());
            return Ok(());
        }
        let (id, session_id) = self.switchable(key)?;
        let session = self.session(key)?;
        if let Some(option) = session
            .option_of(&wire::ConfigCategory::Model)
            .map(|option| option.id.clone())
        {
            return self.set_option(key, &option, &OptionValue::Text(model.to_owned()));
        }
        let models = &session.models.available_models;
        if models.is_empty() {
            return Err(Error::NoModels);
        }
        if !models.iter().any(|known| known.model_id == model) {
            return Err(Error::Unknown {
                what: Setting::Model,
                name: model.to_owned(),
                known: models.iter().map(|known| known.model_id.clone()).collect(),
            });
        }
        let params = wire::SetModelRequest {
            session_id,
            model_id: model.to_owned(),
        };
        self.request(
            id,
            methods::SESSION_SET_MODEL,
            params,
            Waiter::SetModel {
                key,
                id: model.to_owned(),
            },
        );
        Ok(())
    }

    /// Sets a config option.
    pub fn set_option(&mut self, key: Key, option: &str, value: &OptionValue) -> Result<(), Error> {
        let (id, session_id) = self.switchable(key)?;
        let session = self.session(key)?;
        let Some(known) = session.options.iter().find(|known| known.id == option) else {
            let ids = session.options.iter().map(|known| known.id.clone());
            return Err(match session.options.is_empty() {
                true => Error::NoOptions,
                false => Error::Unknown {
                    what: Setting::Option,
                    name: option.to_owned(),
                    known: ids.collect(),
                },
            });
        };
        let value = match (&known.kind, value) {
            (wire::ConfigKind::Boolean { .. }, OptionValue::Bool(yes)) => {
                wire::ConfigValue::Boolean(*yes)
            }
            (wire::ConfigKind::Boolean { .. }, OptionValue::Text(text)) => {
                match text.to_ascii_lowercase().as_str() {
                    "true" | "on" | "yes" | "1" => wire::ConfigValue::Boolean(true),
                    "false" | "off" | "no" | "0" => wire::ConfigValue::Boolean(false),
                    _ => {
                        return Err(Error::NotBoolean {
                            option: option.to_owned(),
                            value: text.clone(),
                        });
                    }
                }
            }
            (wire::ConfigKind::Select { choices, .. }, value) => {
                let text = match value {
                    OptionValue::Text(text) => text.clone(),
                    OptionValue::Bool(yes) => yes.to_string(),
                };
                if !choices.is_empty() && !choices.iter().any(|choice| choice.value == text) {
                    return Err(Error::NotAChoice {
                        option: option.to_owned(),
                        value: text,
                        choices: choices.iter().map(|choice| choice.value.clone()).collect(),
                    });
                }
                wire::ConfigValue::Choice(text)
            }
            (wire::ConfigKind::Unknown { kind }, _) => {
                return Err(Error::UnknownKind {
                    option: option.to_owned(),
                    kind: kind.clone(),
                });
            }
        };
        let params = wire::SetConfigOptionRequest {
            session_id,
            config_id: option.to_owned(),
            value,
        };
        self.request(
            id,
            methods::SESSION_SET_CONFIG_OPTION,
            params,
            Waiter::SetOption {
                key,
                id: option.to_owned(),
            },
        );
        Ok(())
    }

    /// What a session that is not there yet is to be set to when it is.
    fn wanted_later(&mut self, key: Key) -> Option<&mut Wanted> {
        let session = self.sessions.get_mut(&key)?;
        match session.phase {
            Phase::Ready | Phase::Lost => None,
            _ => Some(&mut session.wanted),
        }
    }

    pub(crate) fn switchable(&self, key: Key) -> Result<(AgentId, wire::SessionId), Error> {
        let session = self.session(key)?;
        match (&session.phase, &session.session_id) {
            (Phase::Ready, Some(id)) => Ok((session.agent, id.clone())),
            _ => Err(Error::NotStarted),
        }
    }
}

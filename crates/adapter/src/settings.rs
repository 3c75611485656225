//! The mode and the model of a session.

use acp::types::{
    ConfigOptions, ConfigValue, CurrentMode, Empty, SessionUpdate, SetConfigOptionRequest,
    SetModeRequest,
};

use crate::error::Error;
use crate::options::Mode;
use crate::server::Server;
use crate::session::{DEFAULT_MODEL, MODE_OPTION, MODEL_OPTION, Session};

impl Server {
    pub(crate) fn set_mode(&self, request: &SetModeRequest) -> Result<Empty, Error> {
        let session = self.open_session(request.session_id.as_str())?;
        self.change_mode(&session, &request.mode_id)?;
        let options = session.config_options(&self.models.borrow());
        let options = ConfigOptions {
            options,
            meta: None,
        };
        self.notify(&session, SessionUpdate::ConfigOptions(options));
        Ok(Empty {})
    }

    pub(crate) fn set_config_option(
        &self,
        request: &SetConfigOptionRequest,
    ) -> Result<ConfigOptions, Error> {
        let session = self.open_session(request.session_id.as_str())?;
        let ConfigValue::Choice(value) = &request.value else {
            return Err(Error::Params(format!(
                "The option `{}` takes a string, not a boolean.",
                request.config_id
            )));
        };
        match request.config_id.as_str() {
            MODE_OPTION => {
                self.change_mode(&session, value)?;
                let mode = CurrentMode {
                    mode_id: value.clone(),
                    meta: None,
                };
                self.notify(&session, SessionUpdate::CurrentMode(mode));
            }
            MODEL_OPTION => self.change_model(&session, value.clone())?,
            other => {
                return Err(Error::Params(format!(
                    "Unknown option `{other}`; expected `{MODE_OPTION}` or `{MODEL_OPTION}`."
                )));
            }
        }
        Ok(ConfigOptions {
            options: session.config_options(&self.models.borrow()),
            meta: None,
        })
    }

    pub(crate) fn change_mode(&self, session: &Session, id: &str) -> Result<(), Error> {
        let mode = Mode::from_id(id).ok_or_else(|| {
            Error::Params(format!("Unknown mode `{id}`; expected agent, plan or ask."))
        })?;
        session.meta.borrow_mut().mode = mode;
        self.store.write(&session.meta.borrow());
        Ok(())
    }

    pub(crate) fn change_model(&self, session: &Session, id: String) -> Result<(), Error> {
        let models = self.models.borrow().clone();
        let known = models.iter().any(|model| model.id == id);
        let is_own = self.options.model.as_ref() == Some(&id);
        if !known && !is_own && id != DEFAULT_MODEL && !models.is_empty() {
            let ids: Vec<&str> = models.iter().map(|model| model.id.as_str()).collect();
            return Err(Error::Params(format!(
                "Unknown model `{id}`; expected one of {}.",
                ids.join(", ")
            )));
        }
        let is_default = id == DEFAULT_MODEL && !known;
        session.meta.borrow_mut().model = (!is_default).then_some(id);
        self.store.write(&session.meta.borrow());
        Ok(())
    }
}

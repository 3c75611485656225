//! Neovim's own environment, which agents inherit.

/// Names and values.
pub type Vars = Vec<(String, String)>;

/// Looks the variables up through a callback: they can change while Neovim runs.
#[derive(Debug, Clone, Copy, Default)]
pub struct Env(Option<fn() -> Vars>);

impl Env {
    /// An environment that `vars` lists.
    pub fn new(vars: fn() -> Vars) -> Self {
        Self(Some(vars))
    }

    /// All variables.
    pub fn vars(self) -> Vars {
        self.0.map(|vars| vars()).unwrap_or_default()
    }

    /// One of them.
    pub fn var(self, name: &str) -> Option<String> {
        let mut vars = self.vars().into_iter();
        vars.find(|(known, _)| known == name)
            .map(|(_, value)| value)
    }
}

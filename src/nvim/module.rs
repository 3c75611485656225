//! The functions Lua can call, as `lua/cursor_agent/bridge/types.lua` describes them.
//!
//! Each is an mlua function: errors, wrong arguments and panics become ordinary Lua errors. Failures a user can
//! cause are returned as `nil, message`.

use std::path::PathBuf;
use std::time::Duration;

use mlua::serde::ser::Options as SerializeOptions;
use mlua::{FromLua, Function, IntoLua, IntoLuaMulti, Lua, LuaSerdeExt, MultiValue, Table, Value};
use once_cell::sync::OnceCell;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{ABI, wake};
use crate::driver::Driver;
use crate::error::Error;
use engine::Engine;
use engine::agents::agent::AgentSpec;
use engine::agents::env::Env;
use engine::agents::protocol_log::ProtocolLog;
use engine::decide::decision::Answer;
use engine::ids::{DecisionId, EditorId, Key, PromptId};
use engine::inbound::files::EditorReply;
use engine::policy::{Policy, PolicySpec};
use engine::secrets::Secrets;
use engine::sessions::mcp::Choice;
use engine::sessions::session::{OptionValue, PromptSpec, Wanted};

/// The one runtime of the process.
static DRIVER: OnceCell<Driver> = OnceCell::new();

/// The module table.
pub fn build(lua: &Lua) -> mlua::Result<Table> {
    crate::log::catch_panics();
    // Otherwise each field of each table is set in its own protected call, in case Lua runs out of memory: that
    // is most of the cost of a drain. Neovim does not survive running out of memory either.
    lua.skip_memory_check(true);
    let module = lua.create_table()?;
    module.set("abi", ABI)?;
    module.set("version", env!("CARGO_PKG_VERSION"))?;

    module.set("start", lua.create_function(|_, opts: Table| start(&opts))?)?;
    module.set(
        "shutdown",
        lua.create_function(|_, grace_ms: u64| {
            if let Some(driver) = DRIVER.get() {
                driver.shutdown(Duration::from_millis(grace_ms));
            }
            Ok(())
        })?,
    )?;
    module.set("drain", lua.create_function(drain)?)?;

    module.set(
        "open",
        lua.create_function(|lua, spec: Value| {
            let wanted: OpenWanted = read(lua, spec.clone(), "spec")?;
            let spec: AgentSpec = read(lua, spec, "spec")?;
            answer(
                lua,
                with(|engine| engine.open(spec, wanted.into())).map(|key| key.0),
            )
        })?,
    )?;
    module.set("close", simple(lua, |engine, key| engine.close(key))?)?;
    module.set("cancel", simple(lua, |engine, key| engine.cancel(key))?)?;
    module.set("restart", simple(lua, |engine, key| engine.restart(key))?)?;
    module.set("stop", simple(lua, |engine, key| engine.stop(key))?)?;
    module.set(
        "logged_in",
        simple(lua, |engine, key| engine.logged_in(key))?,
    )?;

    module.set(
        "prompt",
        lua.create_function(|lua, (key, spec): (u64, Value)| {
            let sent = prompt_spec(lua, spec)
                .and_then(|spec| with(|engine| engine.prompt(Key(key), spec)));
            answer(lua, sent.map(|id| id.0))
        })?,
    )?;
    module.set(
        "retry",
        lua.create_function(|lua, key: u64| {
            answer(lua, with(|engine| engine.retry(Key(key))).map(|id| id.0))
        })?,
    )?;
    module.set(
        "queue_edit",
        lua.create_function(|lua, (key, id, spec): (u64, u64, Value)| {
            let edited = prompt_spec(lua, spec)
                .and_then(|spec| with(|engine| engine.queue_edit(Key(key), PromptId(id), spec)));
            done(lua, edited)
        })?,
    )?;
    module.set(
        "queue_remove",
        lua.create_function(|lua, (key, id): (u64, u64)| {
            done(
                lua,
                with(|engine| engine.queue_remove(Key(key), PromptId(id))),
            )
        })?,
    )?;
    module.set(
        "queue_move",
        lua.create_function(|lua, (key, id, to): (u64, u64, usize)| {
            done(
                lua,
                with(|engine| engine.queue_move(Key(key), PromptId(id), to)),
            )
        })?,
    )?;
    module.set(
        "queue_send_now",
        lua.create_function(|lua, (key, id): (u64, u64)| {
            done(
                lua,
                with(|engine| engine.queue_send_now(Key(key), PromptId(id))),
            )
        })?,
    )?;

    module.set(
        "set_mode",
        lua.create_function(|lua, (key, id): (u64, String)| {
            done(lua, with(|engine| engine.set_mode(Key(key), &id)))
        })?,
    )?;
    module.set(
        "set_model",
        lua.create_function(|lua, (key, id): (u64, String)| {
            done(lua, with(|engine| engine.set_model(Key(key), &id)))
        })?,
    )?;
    module.set(
        "set_option",
        lua.create_function(|lua, (key, id, value): (u64, String, Value)| {
            let value: OptionValue = read(lua, value, "value")?;
            done(lua, with(|engine| engine.set_option(Key(key), &id, &value)))
        })?,
    )?;

    module.set(
        "answer",
        lua.create_function(|lua, (id, given, by): (u64, Value, Option<String>)| {
            let given: Answer = match lua.from_value(given) {
                Ok(given) => given,
                // A user's script may call this: return a message rather than raise.
                Err(error) => return done(lua, Err(Error::NotAnAnswer(error.to_string()))),
            };
            let id = DecisionId(id);
            done(lua, with(|engine| engine.answer(id, &given, by)))
        })?,
    )?;
    module.set(
        "set_policy",
        lua.create_function(|lua, spec: Value| {
            let spec: PolicySpec = match lua.from_value(spec) {
                Ok(spec) => spec,
                Err(error) => return done(lua, Err(Error::NotRules(error.to_string()))),
            };
            // Compiled before the engine's lock is taken.
            let policy = Policy::new(spec).map_err(Error::Rules);
            done(
                lua,
                policy.and_then(|policy| {
                    with(|engine| {
                        engine.set_policy(policy);
                        Ok(())
                    })
                }),
            )
        })?,
    )?;
    module.set(
        "reply",
        lua.create_function(|lua, (id, reply): (u64, Value)| {
            let reply: EditorReply = read(lua, reply, "reply")?;
            with(|engine| {
                engine.reply(EditorId(id), reply);
                Ok(())
            })
            .map_err(mlua::Error::runtime)
        })?,
    )?;
    module.set(
        "conflict",
        lua.create_function(|lua, (key, path): (u64, String)| {
            let asked = with(|engine| engine.conflict(Key(key), &path));
            answer(lua, asked.map(|id| id.0))
        })?,
    )?;
    module.set(
        "conflict_over",
        lua.create_function(|_, id: u64| {
            with(|engine| {
                engine.conflict_over(DecisionId(id));
                Ok(())
            })
            .map_err(mlua::Error::runtime)
        })?,
    )?;
    module.set(
        "list_sessions",
        lua.create_function(|lua, key: u64| {
            answer(
                lua,
                with(|engine| engine.list_sessions(Key(key))).map(|id| id.0),
            )
        })?,
    )?;
    module.set(
        "cli_config",
        lua.create_function(|lua, env: Value| {
            let env = read(lua, env, "env")?;
            answer(lua, with(|engine| engine.cli_config(&env)).map(|id| id.0))
        })?,
    )?;
    module.set(
        "sign_in",
        lua.create_function(|lua, spec: Value| {
            let spec: AgentSpec = read(lua, spec, "spec")?;
            to_lua(
                lua,
                &engine::agents::connect::signs_in(&spec, Env::new(crate::known_secrets::own_env)),
            )
        })?,
    )?;
    module.set(
        "notice",
        lua.create_function(|lua, (key, text): (u64, String)| {
            done(lua, with(|engine| engine.notice(Key(key), text)))
        })?,
    )?;
    module.set(
        "delete_session",
        lua.create_function(|lua, (key, id): (u64, String)| {
            answer(
                lua,
                with(|engine| engine.delete_session(Key(key), &id)).map(|id| id.0),
            )
        })?,
    )?;
    module.set(
        "log_in",
        lua.create_function(|lua, (key, method): (u64, String)| {
            answer(
                lua,
                with(|engine| engine.log_in(Key(key), &method)).map(|id| id.0),
            )
        })?,
    )?;
    module.set(
        "logout",
        lua.create_function(|lua, key: u64| {
            answer(lua, with(|engine| engine.logout(Key(key))).map(|id| id.0))
        })?,
    )?;

    module.set("status", view(lua, |engine, key| engine.status(key))?)?;
    module.set(
        "transcript",
        view(lua, |engine, key| engine.transcript(key))?,
    )?;
    module.set(
        "masked_transcript",
        lua.create_function(|lua, key: u64| {
            let whole = with(|engine| {
                let key = Key(key);
                Ok(engine
                    .transcript(key)
                    .map(|all| (all, engine.keys_in_diffs(key))))
            });
            let masked = whole.unwrap_or_default().and_then(|(whole, keys)| {
                let mut entries = serde_json::to_value(whole).ok()?;
                let mut secrets = Secrets::clone(&crate::known_secrets::known());
                secrets.learn(&keys);
                secrets.mask_value(&mut entries);
                Some(entries)
            });
            to_lua(lua, &masked)
        })?,
    )?;
    module.set(
        "resolve",
        lua.create_function(|_, path: String| {
            Ok(engine::policy::paths::resolve(&path, &crate::links::Real))
        })?,
    )?;
    module.set(
        "lock",
        lua.create_function(|lua, path: String| {
            match crate::private::lock(&PathBuf::from(path)) {
                Ok(Some(file)) => {
                    let mut held = Some(file);
                    let unlock = lua.create_function_mut(move |_, ()| {
                        drop(held.take());
                        Ok(())
                    })?;
                    (unlock, Value::Nil).into_lua_multi(lua)
                }
                Ok(None) => (false, Value::Nil).into_lua_multi(lua),
                Err(error) => (Value::Nil, error.to_string()).into_lua_multi(lua),
            }
        })?,
    )?;
    module.set(
        "redact",
        lua.create_function(|lua, text: mlua::LuaString| {
            let shown = crate::known_secrets::known().mask(&text.to_string_lossy());
            lua.create_string(shown)
        })?,
    )?;
    module.set(
        "learn",
        lua.create_function(|lua, spec: Value| {
            let spec: AgentSpec = read(lua, spec, "spec")?;
            let mut secrets = Secrets::of_env(&spec.env);
            secrets.add_command(&spec.command);
            crate::known_secrets::hide(&secrets);
            Ok(())
        })?,
    )?;
    module.set(
        "retell",
        lua.create_function(|_, key: u64| {
            with(|engine| {
                engine.retell(Key(key));
                Ok(())
            })
            .map_err(mlua::Error::runtime)
        })?,
    )?;
    module.set(
        "changes",
        view(lua, |engine, key| engine.changed_files(key))?,
    )?;
    module.set(
        "pending",
        lua.create_function(|lua, key: Option<u64>| {
            let pending = with(|engine| Ok(engine.pending(key.map(Key)))).unwrap_or_default();
            to_lua(lua, &pending)
        })?,
    )?;
    module.set(
        "entry",
        lua.create_function(|lua, (key, entry): (u64, usize)| {
            let entry = with(|engine| Ok(engine.entry(Key(key), entry))).unwrap_or_default();
            to_lua(lua, &entry)
        })?,
    )?;
    module.set(
        "told",
        lua.create_function(|lua, (key, entry): (u64, usize)| {
            let entry = with(|engine| Ok(engine.told(Key(key), entry))).unwrap_or_default();
            to_lua(lua, &entry)
        })?,
    )?;
    module.set(
        "log",
        lua.create_function(|lua, (key, method): (u64, Option<String>)| {
            let lines =
                protocol_log(key).map(|(log, secrets)| log.lines(&secrets, method.as_deref()));
            to_lua(lua, &lines)
        })?,
    )?;
    module.set(
        "log_rows",
        lua.create_function(|lua, (key, method): (u64, Option<String>)| {
            let rows =
                protocol_log(key).map(|(log, secrets)| log.rows(&secrets, method.as_deref()));
            to_lua(lua, &rows)
        })?,
    )?;
    module.set(
        "log_message",
        lua.create_function(|_, (key, number, method): (u64, usize, Option<String>)| {
            Ok(protocol_log(key)
                .and_then(|(log, secrets)| log.message(&secrets, method.as_deref(), number)))
        })?,
    )?;

    module.set(
        "files",
        lua.create_function(|lua, dir: String| {
            to_lua(lua, crate::files::list(&PathBuf::from(dir)).as_ref())
        })?,
    )?;
    module.set(
        "find_files",
        lua.create_function(|lua, (dir, word, max): (String, String, usize)| {
            to_lua(lua, &crate::files::search(&PathBuf::from(dir), &word, max))
        })?,
    )?;

    super::commands::add(lua, &module)?;
    super::memory::add(lua, &module)?;
    super::merging::add(lua, &module)?;
    super::review::add(lua, &module)?;
    module.set("test_error", lua.create_function(test_error)?)?;
    Ok(module)
}

/// The options of an opening that belong to the session, not the agent.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
struct OpenWanted {
    load: Option<String>,
    title: Option<String>,
    mode: Option<String>,
    model: Option<String>,
    options: std::collections::BTreeMap<String, OptionValue>,
    mcp_servers: Vec<serde_json::Value>,
    mcp_files: Choice,
    additional_directories: Vec<String>,
    lookup: bool,
}

impl From<OpenWanted> for Wanted {
    fn from(wanted: OpenWanted) -> Self {
        let servers = wanted
            .mcp_servers
            .into_iter()
            .filter_map(|server| acp::FromValue::from_value(server).ok());
        Self {
            load: wanted.load,
            title: wanted.title,
            fork: None,
            mode: wanted.mode,
            model: wanted.model,
            options: wanted.options,
            mcp_servers: servers.collect(),
            mcp_files: wanted.mcp_files,
            directories: wanted.additional_directories,
            lookup: wanted.lookup,
        }
    }
}

fn start(opts: &Table) -> mlua::Result<()> {
    DRIVER.get_or_try_init(|| begin(opts)).map(drop)
}

fn begin(opts: &Table) -> mlua::Result<Driver> {
    if let Some(path) = opts.get::<Option<String>>("log_path")? {
        crate::log::init(&PathBuf::from(path));
    }
    let waker = wake::waker(opts.get::<Function>("on_wake")?).map_err(mlua::Error::runtime)?;
    Driver::start(waker)
        .map_err(|error| mlua::Error::runtime(format!("cannot start threads: {error}")))
}

/// A copy of the protocol log, so it can be read without the engine's lock.
fn protocol_log(key: u64) -> Option<(ProtocolLog, Secrets)> {
    with(|engine| Ok(engine.protocol_log(Key(key)))).unwrap_or_default()
}

fn drain(lua: &Lua, max_bytes: usize) -> mlua::Result<(Value, bool)> {
    let Some(driver) = DRIVER.get() else {
        return Ok((Value::Table(lua.create_table()?), false));
    };
    // Before taking the changes: one that arrives in between wakes us again.
    driver.draining();
    let (changes, more) = driver.with(|engine| engine.drain(max_bytes));
    Ok((to_lua(lua, &changes)?, more))
}

/// The driver, once it is started.
pub(super) fn driver() -> Result<&'static Driver, Error> {
    DRIVER.get().ok_or(Error::NotStarted)
}

fn with<R>(f: impl FnOnce(&mut Engine) -> Result<R, engine::Error>) -> Result<R, Error> {
    Ok(driver()?.with(f)?)
}

/// A function of a session key that returns true or an error.
fn simple(
    lua: &Lua,
    f: fn(&mut Engine, Key) -> Result<(), engine::Error>,
) -> mlua::Result<Function> {
    lua.create_function(move |lua, key: u64| done(lua, with(|engine| f(engine, Key(key)))))
}

/// A function of a session key that returns a table, or nil if there is no such session.
fn view<T: Serialize + 'static>(
    lua: &Lua,
    f: fn(&Engine, Key) -> Option<T>,
) -> mlua::Result<Function> {
    lua.create_function(move |lua, key: u64| {
        let found = with(|engine| Ok(f(engine, Key(key)))).unwrap_or_default();
        to_lua(lua, &found)
    })
}

fn done(lua: &Lua, result: Result<(), Error>) -> mlua::Result<MultiValue> {
    answer(lua, result.map(|()| true))
}

/// `value`, or `nil, message`.
pub(super) fn answer(lua: &Lua, result: Result<impl IntoLua, Error>) -> mlua::Result<MultiValue> {
    let values = match result {
        Ok(value) => vec![value.into_lua(lua)?],
        Err(error) => vec![Value::Nil, error.to_string().into_lua(lua)?],
    };
    Ok(MultiValue::from_iter(values))
}

/// Parses a prompt. Users can attach blocks, so a malformed one is reported rather than raised.
fn prompt_spec(lua: &Lua, spec: Value) -> Result<PromptSpec, Error> {
    lua.from_value(spec).map_err(|error| {
        let why = error.to_string();
        let why = why.strip_prefix("deserialize error: ").unwrap_or(&why);
        Error::NotAPrompt(why.to_owned())
    })
}

pub(super) fn read<T: DeserializeOwned>(lua: &Lua, value: Value, what: &str) -> mlua::Result<T> {
    lua.from_value(value)
        .map_err(|error| mlua::Error::runtime(format!("{what}: {error}")))
}

/// Converts to Lua; absent values become nil rather than mlua's null.
pub(super) fn to_lua(lua: &Lua, value: &impl Serialize) -> mlua::Result<Value> {
    let options = SerializeOptions::new()
        .set_array_metatable(false)
        .serialize_none_to_null(false)
        .serialize_unit_to_null(false);
    lua.to_value_with(value, options)
}

/// Fails in each way a function can fail, so that tests can check Neovim survives it.
fn test_error(lua: &Lua, (how, number): (String, Value)) -> mlua::Result<()> {
    match how.as_str() {
        #[expect(clippy::panic, reason = "what the bridge must survive")]
        "panic" => panic!(
            "a panic on purpose {}",
            number
                .as_string()
                .map(|text| text.to_string_lossy())
                .unwrap_or_default()
        ),
        "type" => u64::from_lua(number, lua).map(drop),
        _ => Err(mlua::Error::runtime("an error on purpose")),
    }
}

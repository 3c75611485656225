//! Functions Lua calls for stored conversations. Answers come as results.

use std::time::Duration;

use mlua::{Lua, Table, Value};
use serde::Serialize;
use store::transcript::shelf::Shelf;

use super::module::{answer, driver, read, to_lua};
use crate::driver::Driver;
use crate::error::Error;
use crate::memory::Settings;
use crate::past::{self, Past, Which};
use engine::ids::Key;

/// Closed conversations are written within this time, or the disk is stuck.
const SETTLE_WAIT: Duration = Duration::from_secs(2);

/// Adds the functions.
pub(super) fn add(lua: &Lua, module: &Table) -> mlua::Result<()> {
    module.set(
        "memory_setup",
        lua.create_function(|lua, settings: Value| {
            let settings: Settings = read(lua, settings, "settings")?;
            let done = driver().map(|driver| {
                let on = settings.dir.is_some();
                driver.memory().set_up(settings);
                driver.with(|engine| engine.remember_sessions(on));
                true
            });
            answer(lua, done)
        })?,
    )?;
    module.set(
        "stored_sessions",
        lua.create_function(|lua, which: Value| {
            let which: Which = read(lua, which, "which")?;
            let request = later(move |driver| {
                let shelf = driver.memory().shelf();
                Ok(past::stored(shelf.as_ref(), &which))
            });
            answer(lua, request)
        })?,
    )?;
    module.set(
        "merge_sessions",
        lua.create_function(|lua, (stored, listed): (Value, Value)| {
            let stored: Vec<Past> = read(lua, stored, "stored")?;
            let mut listed: Vec<Past> = read(lua, listed, "listed")?;
            for one in &mut listed {
                "agent".clone_into(&mut one.source);
                "load".clone_into(&mut one.how);
            }
            let open = driver().map(|driver| driver.with(|engine| engine.open_ids()));
            let open = open.unwrap_or_default().into_iter().collect();
            to_lua(lua, &past::merge(stored, listed, &open))
        })?,
    )?;
    module.set(
        "stored_preview",
        lua.create_function(|lua, (id, which): (String, Value)| {
            let which: Which = read(lua, which, "which")?;
            let request =
                later(move |driver| past::preview(driver.memory().shelf().as_ref(), &id, &which));
            answer(lua, request)
        })?,
    )?;
    module.set(
        "search",
        lua.create_function(|lua, (text, which): (String, Value)| {
            let which: Which = read(lua, which, "which")?;
            let request =
                later(move |driver| past::search(driver.memory().shelf().as_ref(), &text, &which));
            answer(lua, request)
        })?,
    )?;
    module.set(
        "rename_session",
        lua.create_function(|lua, (id, name): (String, String)| {
            let request = later(move |driver| {
                if driver.with(|engine| engine.rename(&id, &name)) {
                    return Ok(true);
                }
                let shelf = settled(driver);
                let name = Some(name.trim()).filter(|name| !name.is_empty());
                let renamed = shelf.map(|shelf| shelf.rename(&id, name));
                match renamed.transpose()? {
                    Some(1..) => Ok(true),
                    _ => Err(Error::NotStored),
                }
            });
            answer(lua, request)
        })?,
    )?;
    module.set(
        "forget_session",
        lua.create_function(|lua, id: String| {
            let request = later(move |driver| {
                let shelf = settled(driver);
                let deleted = shelf.map(|shelf| shelf.delete(&id)).transpose();
                Ok(deleted?.unwrap_or(0))
            });
            answer(lua, request)
        })?,
    )?;
    module.set(
        "fork_session",
        lua.create_function(|lua, key: u64| {
            let forked = driver().and_then(|driver| Ok(driver.with(|e| e.fork(Key(key)))?));
            answer(lua, forked.map(|key| key.0))
        })?,
    )?;
    module.set(
        "drop_carry",
        lua.create_function(|lua, key: u64| {
            let done = driver().and_then(|driver| Ok(driver.with(|e| e.drop_carry(Key(key)))?));
            answer(lua, done.map(|()| true))
        })?,
    )
}

/// The stored conversations, once the files of closed ones are released.
fn settled(driver: &Driver) -> Option<Shelf> {
    driver.memory().finish(SETTLE_WAIT);
    driver.memory().shelf()
}

/// Computes something on the runtime; returns the number of its result.
fn later<T: Serialize>(
    work: impl FnOnce(&Driver) -> Result<T, Error> + Send + 'static,
) -> Result<u64, Error> {
    let driver = driver()?;
    let own = driver.clone();
    let request = driver.compute(move || {
        let done = work(&own)?;
        Ok(serde_json::to_value(done)?)
    });
    Ok(request.0)
}

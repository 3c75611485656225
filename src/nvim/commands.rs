//! Functions Lua calls besides those for sessions: errands and Cursor's MCP servers.

use mlua::{Lua, Table, Value};

use super::module::{answer, driver, read, to_lua};
use crate::driver::Driver;
use crate::errand::Errand;
use crate::mcp::Place;
use crate::processes::{self, Size};

/// Adds the functions.
pub(super) fn add(lua: &Lua, module: &Table) -> mlua::Result<()> {
    module.set(
        "run",
        lua.create_function(|lua, errand: Value| {
            let errand: Errand = read(lua, errand, "errand")?;
            answer(lua, driver().map(|driver| driver.run(errand).0))
        })?,
    )?;
    module.set(
        "running",
        lua.create_function(|lua, ()| {
            let running = driver().map(Driver::running);
            let request = running.and_then(|mut running| {
                let work = move || {
                    processes::weigh(&mut running);
                    Ok(serde_json::to_value(running)?)
                };
                driver().map(|driver| driver.compute(work).0)
            });
            answer(lua, request)
        })?,
    )?;
    module.set(
        "measure",
        lua.create_function(|lua, paths: Vec<String>| {
            let work = move || {
                let sizes: Vec<Size> = paths.iter().map(|path| processes::measure(path)).collect();
                Ok(serde_json::to_value(sizes)?)
            };
            answer(lua, driver().map(|driver| driver.compute(work).0))
        })?,
    )?;
    module.set(
        "mcp_servers",
        lua.create_function(|lua, place: Value| {
            let place: Place = read(lua, place, "place")?;
            let work = move || Ok(serde_json::to_value(place.overview())?);
            answer(lua, driver().map(|driver| driver.compute(work).0))
        })?,
    )?;
    module.set(
        "mcp_check",
        lua.create_function(|lua, (place, text): (Value, mlua::LuaString)| {
            let place: Place = read(lua, place, "place")?;
            to_lua(lua, &place.check(&text.to_string_lossy()))
        })?,
    )?;
    module.set(
        "mcp_paths",
        lua.create_function(|lua, place: Value| {
            let place: Place = read(lua, place, "place")?;
            let user = place.user_path().map(|path| path.display().to_string());
            let paths = (place.project_path().display().to_string(), user);
            to_lua(lua, &paths)
        })?,
    )?;
    module.set(
        "mcp_list",
        lua.create_function(|lua, (output, known): (mlua::LuaString, Vec<String>)| {
            to_lua(lua, &::mcp::cli::list(&output.to_string_lossy(), &known))
        })?,
    )?;
    module.set(
        "mcp_tools",
        lua.create_function(|lua, output: mlua::LuaString| {
            to_lua(lua, &::mcp::cli::tools(&output.to_string_lossy()))
        })?,
    )
}

//! Functions Lua calls for the review: hunks, keep, undo, checkpoints, and buffer events.

use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use mlua::{Lua, LuaString, MultiValue, Table, Value};
use review::Text;
use serde::Serialize;

use super::module::{answer, driver, read, to_lua};
use crate::driver::Driver;
use crate::error::Error;
use crate::review::desk::{Holds, HunkView, Lines, Select};
use crate::review::restore::{Preview, PreviewView, Restore};
use crate::review::{Base, Keeping, Review, Taking};
use engine::ids::Key;
use engine::sessions::watching::Job;

/// Adds the functions to the module.
pub fn add(lua: &Lua, module: &Table) -> mlua::Result<()> {
    module.set(
        "review_setup",
        lua.create_function(|lua, keeping: Value| {
            let keeping: Keeping = read(lua, keeping, "keeping")?;
            let done = with(|_, review| review.keep_checkpoints(&keeping));
            answer(lua, done.map(|()| true))
        })?,
    )?;
    module.set(
        "review_files",
        lua.create_function(|lua, (key, turn): (Option<u64>, Option<u64>)| {
            let key = key.map(Key);
            let files = with(|_, review| Ok(review.desk(|desk| desk.files(key, turn))));
            to_lua(lua, &files.unwrap_or_default())
        })?,
    )?;
    module.set(
        "review_hunks",
        lua.create_function(|lua, (select, lines): (Value, Option<bool>)| {
            let select: Select = read(lua, select, "select")?;
            let lines = lines.unwrap_or_default();
            let hunks = with(|_, review| Ok(review.desk(|desk| desk.hunks(&select, lines))));
            hunks_to_lua(lua, hunks.unwrap_or_default())
        })?,
    )?;
    module.set(
        "review_keep",
        lua.create_function(|lua, select: Value| {
            let select: Select = read(lua, select, "select")?;
            let kept = with(|_, review| Ok(review.keep(&select)));
            to_lua(lua, &kept.unwrap_or_default())
        })?,
    )?;
    module.set(
        "review_undo",
        lua.create_function(|lua, select: Value| {
            let select: Select = read(lua, select, "select")?;
            let undone = with(|_, review| Ok(review.undo(&select)));
            to_lua(lua, &undone.unwrap_or_default())
        })?,
    )?;
    add_buffers(lua, module)?;
    add_checkpoints(lua, module)
}

/// Hunks for Lua. There may be thousands, so this avoids the generic conversion.
fn hunks_to_lua(lua: &Lua, hunks: Vec<HunkView>) -> mlua::Result<Table> {
    let names = [
        "id", "path", "old", "new", "key", "turn", "removed", "added",
    ];
    let [id, path, old, new, key, turn, removed, added] = names.map(|name| lua.create_string(name));
    let (id, path, old, new) = (id?, path?, old?, new?);
    let (key, turn, removed, added) = (key?, turn?, removed?, added?);
    let (line, count) = (lua.create_string("line")?, lua.create_string("count")?);
    let lines = |lines: Lines| -> mlua::Result<Table> {
        let table = lua.create_table_with_capacity(0, 2)?;
        table.raw_set(&line, lines.line)?;
        table.raw_set(&count, lines.count)?;
        Ok(table)
    };
    let mut of: Option<(PathBuf, LuaString)> = None;
    let list = lua.create_table_with_capacity(hunks.len(), 0)?;
    for hunk in hunks {
        let table = lua.create_table_with_capacity(0, 8)?;
        let name = match of.take_if(|(path, _)| *path == hunk.path) {
            Some((_, name)) => name,
            None => lua.create_string(hunk.path.as_os_str().as_bytes())?,
        };
        table.raw_set(&id, hunk.id)?;
        table.raw_set(&path, &name)?;
        table.raw_set(&old, lines(hunk.old)?)?;
        table.raw_set(&new, lines(hunk.new)?)?;
        table.raw_set(&key, hunk.key.0)?;
        table.raw_set(&turn, hunk.turn)?;
        if !hunk.removed.is_empty() {
            table.raw_set(&removed, hunk.removed)?;
        }
        if let Some(first) = hunk.added {
            table.raw_set(&added, first)?;
        }
        list.raw_push(table)?;
        of = Some((hunk.path, name));
    }
    Ok(list)
}

/// Buffer events for files under review.
fn add_buffers(lua: &Lua, module: &Table) -> mlua::Result<()> {
    module.set(
        "review_took",
        lua.create_function(|_, (path, taking): (String, Table)| {
            let taking = taking_of(&taking)?;
            let path = PathBuf::from(path);
            let known = with(|_, review| Ok(review.took(&path, taking)));
            Ok(known.unwrap_or_default())
        })?,
    )?;
    module.set(
        "review_has_buffer",
        lua.create_function(|_, path: String| {
            let path = PathBuf::from(path);
            let has = with(|_, review| Ok(review.desk(|desk| desk.has_buffer(&path))));
            Ok(has.unwrap_or_default())
        })?,
    )?;
    module.set(
        "review_seen",
        lua.create_function(|_, (path, state): (String, String)| {
            let path = PathBuf::from(path);
            let seen = with(|_, review| Ok(review.desk(|desk| desk.has_seen(&path, &state))));
            Ok(seen.unwrap_or_default().unwrap_or_default())
        })?,
    )?;
    module.set(
        "review_took_later",
        lua.create_function(|lua, (path, taking): (String, Table)| {
            let (path, taking) = (PathBuf::from(path), taking_of(&taking)?);
            let id = driver().map(|driver| {
                let at_work = driver.clone();
                driver.beside(move |_| at_work.review().took_long(&path, taking))
            });
            answer(lua, id.map(|id| id.0))
        })?,
    )?;
    module.set(
        "review_text_later",
        lua.create_function(|lua, (path, text): (String, LuaString)| {
            let (path, text) = (PathBuf::from(path), text.as_bytes().to_vec());
            let id = driver().map(|driver| {
                let at_work = driver.clone();
                driver.beside(move |_| at_work.review().long_buffer(&path, &text))
            });
            answer(lua, id.map(|id| id.0))
        })?,
    )?;
    module.set(
        "review_typed",
        lua.create_function(
            |_, (path, first, last, lines): (String, usize, usize, Vec<LuaString>)| {
                let lines: Vec<Vec<u8>> =
                    lines.iter().map(|line| line.as_bytes().to_vec()).collect();
                let path = PathBuf::from(path);
                let _ = with(|_, review| {
                    review.desk(|desk| desk.typed(&path, first, last, &lines));
                    Ok(())
                });
                Ok(())
            },
        )?,
    )?;
    module.set(
        "review_unloaded",
        lua.create_function(|_, path: String| {
            let _ = with(|_, review| {
                review.desk(|desk| desk.buffer_gone(&PathBuf::from(path)));
                Ok(())
            });
            Ok(())
        })?,
    )?;
    module.set(
        "review_saved",
        lua.create_function(|_, (path, state): (String, String)| {
            let path = PathBuf::from(path);
            let _ = with(|_, review| {
                review.saved(&path, &state);
                Ok(())
            });
            Ok(())
        })?,
    )?;
    module.set(
        "review_wrote",
        lua.create_function(|_, path: String| {
            let path = PathBuf::from(path);
            let _ = with(|_, review| {
                review.tell(Job::UserWrote { path });
                Ok(())
            });
            Ok(())
        })?,
    )?;
    module.set(
        "review_noticed",
        lua.create_function(|_, (path, bytes, state): (String, LuaString, String)| {
            let (path, bytes) = (PathBuf::from(path), bytes.as_bytes().to_vec());
            let _ = with(|_, review| {
                review.noticed(&path, bytes, state);
                Ok(())
            });
            Ok(())
        })?,
    )?;
    module.set(
        "review_commits",
        lua.create_function(|_, ()| {
            let _ = with(|_, review| {
                review.tell(Job::LookForCommits);
                Ok(())
            });
            Ok(())
        })?,
    )?;
    module.set(
        "review_words",
        lua.create_function(|lua, (old, new): (LuaString, LuaString)| {
            let (old, new) = (old.to_string_lossy(), new.to_string_lossy());
            let (removed, added) = review::words::changed(&old, &new);
            let pairs = |ranges: Vec<std::ops::Range<usize>>| -> Vec<(usize, usize)> {
                ranges
                    .into_iter()
                    .map(|range| (range.start, range.end))
                    .collect()
            };
            to_lua(lua, &(pairs(removed), pairs(added)))
        })?,
    )
}

/// A buffer's report that it took in a change on disk.
fn taking_of(table: &Table) -> mlua::Result<Taking> {
    let bytes = |name: &str| -> mlua::Result<Option<Vec<u8>>> {
        let found: Option<LuaString> = table.raw_get(name)?;
        Ok(found.map(|found| found.as_bytes().to_vec()))
    };
    let edits: Option<Vec<Table>> = table.raw_get("edits")?;
    let holds = if let Some(text) = bytes("text")? {
        Holds::Text(Text::new(text))
    } else if let Some(edits) = edits {
        let edits = edits.iter().map(edit_of).collect::<mlua::Result<_>>()?;
        Holds::Edits(edits)
    } else if table.raw_get::<Option<bool>>("same")? == Some(true) {
        Holds::Same
    } else {
        Holds::Disk
    };
    let base = match (bytes("base")?, table.raw_get::<Option<bool>>("made")?) {
        (Some(bytes), _) => Base::Bytes(bytes),
        (None, Some(true)) => Base::Absent,
        (None, _) => Base::Unknown,
    };
    Ok(Taking {
        state: table.raw_get("state")?,
        bytes: bytes("bytes")?,
        base,
        before: bytes("before")?,
        holds,
        key: table.raw_get::<Option<u64>>("key")?.map(Key),
        turn: table.raw_get("turn")?,
        mixed: table.raw_get::<Option<bool>>("mixed")?.unwrap_or_default(),
    })
}

/// Replaced lines in the form of `files/merge.lua`: an insertion names the line above it.
fn edit_of(table: &Table) -> mlua::Result<(std::ops::Range<usize>, Vec<Vec<u8>>)> {
    let (from, removed): (usize, usize) = (table.raw_get("from")?, table.raw_get("removed")?);
    let first = if removed == 0 {
        from
    } else {
        from.saturating_sub(1)
    };
    let lines: Vec<LuaString> = table.raw_get("lines")?;
    let lines = lines.iter().map(|line| line.as_bytes().to_vec());
    Ok((first..first + removed, lines.collect()))
}

fn add_checkpoints(lua: &Lua, module: &Table) -> mlua::Result<()> {
    module.set(
        "checkpoints",
        lua.create_function(|lua, session: Option<String>| {
            answer_table(
                lua,
                with(|_, review| review.checkpoints(session.as_deref())),
            )
        })?,
    )?;
    module.set(
        "checkpoint_preview",
        lua.create_function(|lua, id: String| {
            let previews = with(|_, review| review.preview(&id)).map(|previews| {
                let view = |preview: Preview| PreviewView {
                    path: preview.path,
                    touched: preview.touched,
                    known: preview.then.is_some(),
                    same: preview.then.as_ref() == Some(&preview.now),
                    then: preview.then.as_ref().and_then(text_of),
                    now: text_of(&preview.now),
                };
                previews.into_iter().map(view).collect::<Vec<_>>()
            });
            answer_table(lua, previews)
        })?,
    )?;
    module.set(
        "restore",
        lua.create_function(|lua, (id, what): (String, Value)| {
            let what: Restore = read(lua, what, "what")?;
            let done = with(|driver, review| review.restore(&id, &what, driver.wall_ms()));
            answer_table(lua, done)
        })?,
    )
}

/// The text of a file; None if it does not exist or is not text.
fn text_of(snapshot: &store::checkpoint::Snapshot) -> Option<String> {
    match snapshot {
        store::checkpoint::Snapshot::File { bytes, .. } if !bytes.contains(&0) => {
            Some(String::from_utf8_lossy(bytes).into_owned())
        }
        _ => None,
    }
}

fn with<R>(f: impl FnOnce(&Driver, &Review) -> Result<R, Error>) -> Result<R, Error> {
    let driver = driver()?;
    f(driver, driver.review())
}

/// A table, or `nil, message`.
fn answer_table(lua: &Lua, result: Result<impl Serialize, Error>) -> mlua::Result<MultiValue> {
    let result = result.map(|value| to_lua(lua, &value));
    match result {
        Ok(value) => answer(lua, Ok(value?)),
        Err(error) => answer(lua, Err::<Value, _>(error)),
    }
}

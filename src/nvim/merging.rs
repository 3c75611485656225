//! Functions Lua calls to merge texts: immediately, or on the runtime when that would be noticeable.

use std::collections::HashMap;
use std::sync::Mutex;

use mlua::{Lua, LuaString, MultiValue, Table, Value};
use review::Text;

use super::module::{answer, driver};
use review::merging::{Change, Place, Texts};

/// Outcomes of merges on the runtime, until Lua fetches them.
static DONE: Mutex<Option<HashMap<u64, Outcome>>> = Mutex::new(None);

/// What to compute from the texts.
#[derive(Debug, Clone, Copy)]
enum Want {
    Merged,
    Marked,
    Places,
}

#[derive(Debug)]
enum Outcome {
    Changes(Option<Vec<Change>>),
    Places(Vec<Place>, usize),
}

/// Adds the functions to the module.
pub fn add(lua: &Lua, module: &Table) -> mlua::Result<()> {
    module.set(
        "merge",
        lua.create_function(|lua, (want, texts): (String, Table)| {
            let (want, texts) = (wanted(&want)?, read(&texts)?);
            to_lua(lua, run(want, &texts))
        })?,
    )?;
    module.set(
        "merge_later",
        lua.create_function(|lua, (want, texts): (String, Table)| {
            let want = wanted(&want)?;
            let raw = Raw::read(&texts)?;
            let id = driver().map(|driver| {
                driver.beside(move |id| {
                    let outcome = run(want, &raw.texts());
                    if let Ok(mut done) = DONE.lock() {
                        done.get_or_insert_default().insert(id.0, outcome);
                    }
                })
            });
            answer(lua, id.map(|id| id.0))
        })?,
    )?;
    module.set(
        "merge_take",
        lua.create_function(|lua, id: u64| {
            let taken = DONE
                .lock()
                .ok()
                .and_then(|mut done| done.as_mut()?.remove(&id));
            match taken {
                Some(outcome) => to_lua(lua, outcome),
                None => Ok(MultiValue::new()),
            }
        })?,
    )?;
    Ok(())
}

/// Unsplit texts: splitting them into lines takes time as well.
struct Raw {
    ours: Vec<u8>,
    theirs: Vec<u8>,
    basis: Option<Vec<u8>>,
    saved: Option<Vec<u8>>,
    moved: Option<(Vec<u8>, Vec<u8>)>,
}

impl Raw {
    fn read(texts: &Table) -> mlua::Result<Self> {
        let part = |name: &str| -> mlua::Result<Option<Vec<u8>>> {
            let text = texts.get::<Option<LuaString>>(name)?;
            Ok(text.map(|text| text.as_bytes().to_vec()))
        };
        Ok(Self {
            ours: part("ours")?.unwrap_or_default(),
            theirs: part("theirs")?.unwrap_or_default(),
            basis: part("basis")?,
            saved: part("saved")?,
            moved: part("base")?.zip(part("disk")?),
        })
    }

    fn texts(&self) -> Texts {
        Texts {
            ours: Text::new(&self.ours),
            theirs: Text::new(&self.theirs),
            basis: self.basis.as_ref().map(Text::new),
            saved: self.saved.as_ref().map(Text::new),
            moved: self
                .moved
                .as_ref()
                .map(|(base, disk)| (Text::new(base), Text::new(disk))),
        }
    }
}

fn read(texts: &Table) -> mlua::Result<Texts> {
    Ok(Raw::read(texts)?.texts())
}

fn wanted(want: &str) -> mlua::Result<Want> {
    match want {
        "merged" => Ok(Want::Merged),
        "marked" => Ok(Want::Marked),
        "places" => Ok(Want::Places),
        other => Err(mlua::Error::runtime(format!("merge: no {other}"))),
    }
}

fn run(want: Want, texts: &Texts) -> Outcome {
    match want {
        Want::Merged => Outcome::Changes(texts.merged()),
        Want::Marked => Outcome::Changes(Some(texts.marked())),
        Want::Places => {
            let (places, count) = texts.places();
            Outcome::Places(places, count)
        }
    }
}

/// Hunks as `merge.lua` applies them, or places and their count. Nothing on a conflict.
fn to_lua(lua: &Lua, outcome: Outcome) -> mlua::Result<MultiValue> {
    let lines = |lines: Vec<Vec<u8>>| -> mlua::Result<Table> {
        let list = lua.create_table_with_capacity(lines.len(), 0)?;
        for line in lines {
            list.raw_push(lua.create_string(line)?)?;
        }
        Ok(list)
    };
    let list = lua.create_table()?;
    match outcome {
        Outcome::Changes(None) => Ok(MultiValue::new()),
        Outcome::Changes(Some(changes)) => {
            for change in changes {
                let hunk = lua.create_table()?;
                // Added lines go after this one; other changes start at it.
                let from = change.first + usize::from(change.removed > 0);
                hunk.raw_set("from", from)?;
                hunk.raw_set("removed", change.removed)?;
                hunk.raw_set("lines", lines(change.lines)?)?;
                list.raw_push(hunk)?;
            }
            Ok(MultiValue::from_iter([Value::Table(list)]))
        }
        Outcome::Places(places, count) => {
            for place in places {
                let shown = lua.create_table()?;
                shown.raw_set("mine", place.at.0 + 1)?;
                shown.raw_set("theirs", place.at.1 + 1)?;
                shown.raw_set("ours", lines(place.ours)?)?;
                shown.raw_set("agents", lines(place.theirs)?)?;
                shown.raw_set("hidden", place.hidden)?;
                list.raw_push(shown)?;
            }
            let count = i64::try_from(count).unwrap_or(i64::MAX);
            Ok(MultiValue::from_iter([
                Value::Table(list),
                Value::Integer(count),
            ]))
        }
    }
}

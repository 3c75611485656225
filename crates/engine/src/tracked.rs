//! Maps that know what was changed in them: whoever asks for a thing to change it, marks it. So the editor hears of every
//! change without a call to remember.

use std::collections::btree_map::{Keys, Values};
use std::collections::{BTreeMap, BTreeSet};

/// A thing whose change concerns an owner.
pub trait Owned {
    /// What is marked: a session, or all sessions of an agent.
    type Owner: Copy + Ord;

    /// Whose it is.
    fn owner(&self) -> Self::Owner;
}

/// A map that marks the owners of what is added, changed or removed.
#[derive(Debug)]
pub struct Tracked<K, V: Owned> {
    map: BTreeMap<K, V>,
    touched: BTreeSet<V::Owner>,
}

impl<K, V: Owned> Default for Tracked<K, V> {
    fn default() -> Self {
        Self {
            map: BTreeMap::new(),
            touched: BTreeSet::new(),
        }
    }
}

impl<K: Ord, V: Owned> Tracked<K, V> {
    /// One, to look at.
    pub fn get(&self, key: &K) -> Option<&V> {
        self.map.get(key)
    }

    /// One, to change.
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let value = self.map.get_mut(key)?;
        self.touched.insert(value.owner());
        Some(value)
    }

    /// One, to note something the editor never sees.
    pub fn get_unseen(&mut self, key: &K) -> Option<&mut V> {
        self.map.get_mut(key)
    }

    /// Adds one.
    pub fn insert(&mut self, key: K, value: V) {
        self.touched.insert(value.owner());
        self.map.insert(key, value);
    }

    /// Takes one out.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        let value = self.map.remove(key)?;
        self.touched.insert(value.owner());
        Some(value)
    }

    /// All, oldest first.
    pub fn values(&self) -> Values<'_, K, V> {
        self.map.values()
    }

    /// Their numbers.
    pub fn keys(&self) -> Keys<'_, K, V> {
        self.map.keys()
    }

    /// Whose were changed since the last call.
    pub fn take_touched(&mut self) -> BTreeSet<V::Owner> {
        std::mem::take(&mut self.touched)
    }
}

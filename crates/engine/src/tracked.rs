//! Maps that record which of their values changed: taking a mutable reference marks the value. So every change
//! reaches the editor without an explicit call.

use std::collections::btree_map::{Keys, Values};
use std::collections::{BTreeMap, BTreeSet};

/// A value whose changes concern an owner.
pub trait Owned {
    /// What is marked: a session, or all sessions of an agent.
    type Owner: Copy + Ord;

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
    /// Read access.
    pub fn get(&self, key: &K) -> Option<&V> {
        self.map.get(key)
    }

    /// Write access; marks the owner.
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let value = self.map.get_mut(key)?;
        self.touched.insert(value.owner());
        Some(value)
    }

    /// Write access for something the editor never sees; marks nothing.
    pub fn get_unseen(&mut self, key: &K) -> Option<&mut V> {
        self.map.get_mut(key)
    }

    /// Marks the owner of a value that something kept elsewhere is shown with.
    pub fn touch(&mut self, key: &K) {
        self.get_mut(key);
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

    /// The owners of values changed since the last call.
    pub fn take_touched(&mut self) -> BTreeSet<V::Owner> {
        std::mem::take(&mut self.touched)
    }
}

//! Other names for interfaces than those they were made with.

use super::{Interface, InterfaceChange, InterfaceError};
use crate::control::engine::Engine;
use crate::graph::interface::InterfaceRow;
use crate::ids::{InterfaceId, NodeId};

impl Interface {
    /// The name that the interface was made with, under which the command that made it makes it
    /// again.
    pub fn made_name(&self) -> &str {
        self.made_name.as_deref().unwrap_or(&self.name)
    }
}

impl Engine {
    /// Give an interface another name. Its nodes, and its sub-interfaces that are called after it,
    /// follow. The name that it was made with stays taken.
    ///
    /// # Errors
    /// The interface does not exist, the name is taken or malformed, or a worker does not answer.
    pub fn rename_interface(&mut self, id: InterfaceId, name: &str) -> Result<(), InterfaceError> {
        let old = self.interface(id).ok_or(InterfaceError::Unknown)?.name.clone();
        if old == name {
            return Ok(());
        }
        let parts = self.parts_called_after(id, &old, name);
        self.check_name_for(id, name)?;
        parts.iter().try_for_each(|(part, made, _)| self.check_name_for(*part, made))?;
        self.put_name(id, &old, name);
        for (part, made, follows) in parts {
            let was =
                self.interface(part).map(|interface| interface.name.clone()).unwrap_or_default();
            if follows {
                self.put_name(part, &was, &made);
            }
            // Made again, it is called after its parent's new name from the start.
            self.remake_name(part, (!follows).then_some(made));
        }
        Ok(())
    }

    /// Sub-interfaces made with a name that begins with `old`, their parent's: the name that they
    /// would be made with under `new`, and whether their current name is the one they were made
    /// with.
    fn parts_called_after(
        &self,
        parent: InterfaceId,
        old: &str,
        new: &str,
    ) -> Vec<(InterfaceId, String, bool)> {
        let called = |part| {
            let interface = self.interface(part)?;
            let rest = interface.made_name().strip_prefix(old)?;
            let follows = interface.made_name() == interface.name;
            rest.starts_with('.').then(|| (part, format!("{new}{rest}"), follows))
        };
        self.sub_interfaces(parent).filter_map(called).collect()
    }

    /// As for a new interface, but an interface may have again the name that it was made with.
    fn check_name_for(&self, id: InterfaceId, name: &str) -> Result<(), InterfaceError> {
        match self.interface(id) {
            Some(interface) if interface.made_name() == name => Ok(()),
            _ => self.check_new_name(name),
        }
    }

    fn put_name(&mut self, id: InterfaceId, old: &str, new: &str) {
        let Some(interface) = self.interfaces.list.get_mut(id.index()).and_then(Option::as_mut)
        else {
            return;
        };
        let made = interface.made_name().to_owned();
        new.clone_into(&mut interface.name);
        let InterfaceRow { shares_output, output, tx, .. } = interface.row;
        self.interfaces.forget_name(old);
        self.interfaces.enter_name(new, id);
        self.remake_name(id, Some(made).filter(|made| made != new));
        if !shares_output {
            self.rename_node(output, format!("{new}-output"));
            self.rename_node(tx, format!("{new}-tx"));
        }
        self.notify_observers(id, InterfaceChange::Renamed);
    }

    /// Remember the name that an interface was made with, when that is another one.
    fn remake_name(&mut self, id: InterfaceId, made: Option<String>) {
        let Some(interface) = self.interfaces.list.get_mut(id.index()).and_then(Option::as_mut)
        else {
            return;
        };
        if let Some(before) = interface.made_name.take() {
            self.interfaces.made_names.remove(&before);
        }
        interface.made_name.clone_from(&made);
        self.interfaces.made_names.extend(made);
    }

    /// Can a new interface be called so?
    pub fn is_interface_name_free(&self, name: &str) -> bool {
        !self.interfaces.by_name.contains_key(name) && !self.interfaces.made_names.contains(name)
    }

    fn rename_node(&mut self, id: NodeId, name: String) {
        let Some(info) = self.nodes.get_mut(id.index()).and_then(Option::as_mut) else { return };
        self.directory.ids.remove(&info.spec.name);
        self.directory.ids.insert(name.clone(), id);
        info.spec.name = name;
    }
}

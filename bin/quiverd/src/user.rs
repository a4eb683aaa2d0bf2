//! Root's rights are given up at the start: the router goes on as a user of its own, with the
//! capabilities that its commands need and no way back.

use std::fs;
use std::os::unix::fs::chown;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use quiver_control::server::group_id;
use rustix::process::{Gid, Uid, geteuid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, remove_capability_from_bounding_set,
    set_capabilities, set_keep_capabilities, set_no_new_privs, set_thread_gid, set_thread_groups,
    set_thread_uid,
};

/// What the commands need, as in the packaged service.
const KEPT: CapabilitySet = CapabilitySet::NET_ADMIN
    .union(CapabilitySet::NET_RAW)
    .union(CapabilitySet::IPC_LOCK)
    .union(CapabilitySet::SYS_NICE)
    .union(CapabilitySet::BPF);

/// A user of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
struct User {
    id: u32,
    group: u32,
}

impl User {
    /// By name or number, in the text of `/etc/passwd`.
    fn find(passwd: &str, wanted: &str) -> Option<User> {
        passwd.lines().find_map(|line| {
            let mut fields = line.split(':');
            let (name, id, group) = (fields.next()?, fields.nth(1)?, fields.next()?);
            let is_it = name == wanted || id == wanted;
            is_it.then(|| Some(User { id: id.parse().ok()?, group: group.parse().ok()? })).flatten()
        })
    }
}

/// Who the router is to be, as the start-up file says.
pub struct Wanted<'a> {
    /// The user, by name or number.
    pub user: &'a str,
    /// The group that may use the sockets: the router must be in it to give them to it.
    pub group: Option<&'a str>,
    /// Other network namespaces are entered, for which a capability is kept that is nearly root's.
    pub namespaces: bool,
}

/// Become this user. The folders are its own then. No other thread may run yet: they would keep
/// root's rights.
///
/// # Errors
/// There is no such user, this process may not become it, or threads run.
pub fn become_user(wanted: &Wanted<'_>, folders: &[&Path]) -> Result<()> {
    let Wanted { user, group, namespaces } = wanted;
    let passwd = fs::read_to_string("/etc/passwd").context("/etc/passwd")?;
    let User { id, group: own } = User::find(&passwd, user).ok_or_else(|| {
        anyhow!("unix user: no user '{user}': `getent passwd` lists the users of this machine")
    })?;
    if geteuid().as_raw() == id {
        return Ok(());
    }
    if !geteuid().is_root() {
        bail!("unix user: only root becomes another user: start quiverd as root, or as {user}");
    }
    if fs::read_dir("/proc/self/task").map_or(1, Iterator::count) > 1 {
        bail!("unix user: threads run already, and would stay root's");
    }
    let other = group.map(group_id).transpose().map_err(|refusal| anyhow!("{refusal}"))?;
    for folder in folders {
        chown(folder, Some(id), Some(own)).with_context(|| folder.display().to_string())?;
    }
    let kept = if *namespaces { KEPT.union(CapabilitySet::SYS_ADMIN) } else { KEPT };
    let held = capabilities(None)?.permitted.intersection(kept);
    for capability in CapabilitySet::all().difference(kept).iter() {
        // One that this kernel does not know is no loss.
        let _ = remove_capability_from_bounding_set(capability);
    }
    set_keep_capabilities(true)?;
    let groups: Vec<Gid> = other.into_iter().map(Gid::from_raw).collect();
    set_thread_groups(&groups)?;
    set_thread_gid(Gid::from_raw(own))?;
    set_thread_uid(Uid::from_raw(id))?;
    let sets =
        CapabilitySets { effective: held, permitted: held, inheritable: CapabilitySet::empty() };
    set_capabilities(None, sets)?;
    set_no_new_privs(true)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_found_by_name_and_by_number() {
        let passwd =
            "root:x:0:0:root:/root:/bin/sh\nquiver:x:998:997::/nonexistent:/bin/false\nx\n";
        let quiver = Some(User { id: 998, group: 997 });
        assert_eq!(User::find(passwd, "quiver"), quiver);
        assert_eq!(User::find(passwd, "998"), quiver);
        assert_eq!(User::find(passwd, "quive"), None);
        assert_eq!(User::find("a:x:b:c\n", "a"), None);
    }
}

//! Who is at the other end of a connection.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::os::fd::AsFd;

use quiver_linux::rights::peer_groups;

use crate::files::Trust;
use crate::rights::{Rights, Role};

/// A client's user, as the kernel says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    user: User,
    pub(crate) rights: Rights,
}

/// Whose share of the places a client takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum User {
    /// A user of this machine.
    Local(u32),
    /// Somebody over TCP from this machine.
    Loopback,
    /// Somebody who has shown no certificate yet.
    Stranger,
    /// The owner of certificates with a name, as its hash.
    Certified(u64),
}

/// Whose members may use the sockets, besides root and the router's own user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Groups {
    /// Operators.
    pub(crate) operators: u32,
    /// Those who only look. `None`: only operators can connect, for the sockets are theirs.
    pub(crate) read_only: Option<u32>,
}

impl Groups {
    /// The role of a user in these groups; `None` in none of them.
    fn role(self, groups: &[u32]) -> Option<Role> {
        let Some(read_only) = self.read_only else { return Some(Role::Operator) };
        if groups.contains(&self.operators) {
            return Some(Role::Operator);
        }
        groups.contains(&read_only).then_some(Role::ReadOnly)
    }
}

impl Peer {
    /// A client over TCP: it read the token's file, so it has the rights of its owner.
    pub(crate) fn tcp() -> Peer {
        Peer { user: User::Loopback, rights: Rights::default() }
    }

    /// A client from elsewhere that has shown no certificate yet. No user of this machine, it names
    /// the files that nobody in particular may name.
    pub(crate) fn stranger() -> Peer {
        let trust = Trust::Confined { user: NOBODY, group: NOBODY };
        Peer { user: User::Stranger, rights: Rights { trust, role: Role::ReadOnly } }
    }

    /// The same client when its certificate is known.
    pub(crate) fn certified(name: &str, role: Role) -> Peer {
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        let Rights { trust, .. } = Peer::stranger().rights;
        Peer { user: User::Certified(hasher.finish()), rights: Rights { trust, role } }
    }

    /// The process that connected to a Unix socket; `None` if it is in none of the groups. One of
    /// whom the kernel says nothing is nobody.
    pub(crate) fn of(stream: impl AsFd, groups: Groups) -> Option<Peer> {
        let stream = stream.as_fd();
        let known = rustix::net::sockopt::socket_peercred(stream);
        let (user, group) =
            known.map_or((NOBODY, NOBODY), |known| (known.uid.as_raw(), known.gid.as_raw()));
        let mut its_groups = peer_groups(stream).unwrap_or_default();
        its_groups.push(group);
        Peer::new(user, &its_groups, groups, rustix::process::geteuid().as_raw())
    }

    /// The last of `its` groups is its first one.
    fn new(user: u32, its: &[u32], groups: Groups, own: u32) -> Option<Peer> {
        let rights = if user == 0 || user == own {
            Rights::default()
        } else {
            let group = its.last().copied().unwrap_or(NOBODY);
            Rights { trust: Trust::Confined { user, group }, role: groups.role(its)? }
        };
        Some(Peer { user: User::Local(user), rights })
    }

    /// Root, and the router's own user, always get in.
    pub(crate) fn always_gets_in(self) -> bool {
        matches!(self.user, User::Local(_)) && self.rights.trust == Trust::Full
    }

    /// The user whose share of the places it takes.
    pub(crate) fn user(self) -> User {
        self.user
    }
}

/// The user of whom nothing is known.
const NOBODY: u32 = 65_534;

/// A place that is taken: whose, and since when nothing was heard.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seat {
    pub(crate) client: u64,
    pub(crate) peer: Peer,
    pub(crate) is_idle: bool,
    pub(crate) heard: u64,
}

/// What becomes of a client that comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// There is room.
    Free,
    /// This client gives way.
    InsteadOf(u64),
    /// There is no room for it.
    Refused,
}

/// Is there room for `newcomer` where at most `places` clients may be, and `of_user` of one user?
/// Of idle clients the one gives way that was not heard for the longest: one of the same user when
/// that has its share, otherwise one of the user with most. For root and the router's own user a
/// client gives way that is not idle, too.
pub(crate) fn entry(newcomer: Peer, seats: &[Seat], places: usize, of_user: usize) -> Entry {
    let count = |user| seats.iter().filter(|seat| seat.peer.user() == user).count();
    let is_own = |seat: &&Seat| seat.peer.user() == newcomer.user();
    let oldest = |seats: &mut dyn Iterator<Item = &Seat>| {
        seats.min_by_key(|seat| seat.heard).map(|seat| seat.client)
    };
    let instead = |client: Option<u64>| client.map_or(Entry::Refused, Entry::InsteadOf);
    if !newcomer.always_gets_in() && count(newcomer.user()) >= of_user {
        return instead(oldest(&mut seats.iter().filter(is_own).filter(|seat| seat.is_idle)));
    }
    if seats.len() < places {
        return Entry::Free;
    }
    let idle: Vec<&Seat> = seats.iter().filter(|seat| seat.is_idle).collect();
    let most = idle.iter().map(|seat| count(seat.peer.user())).max();
    let crowd = idle.iter().copied().filter(|seat| Some(count(seat.peer.user())) == most);
    if let Some(client) = oldest(&mut crowd.into_iter()) {
        return Entry::InsteadOf(client);
    }
    if !newcomer.always_gets_in() {
        return Entry::Refused;
    }
    let others = seats.iter().filter(|seat| !seat.peer.always_gets_in());
    instead(oldest(&mut others.into_iter()).or_else(|| oldest(&mut seats.iter())))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: u32 = 900;

    fn peer(user: u32) -> Peer {
        Peer::new(user, &[user], Groups::default(), OWN).unwrap()
    }

    /// Clients numbered from 0, heard in that order.
    fn seats(users: &[(u32, bool)]) -> Vec<Seat> {
        let seat = |(client, (user, is_idle)): (usize, &(u32, bool))| Seat {
            client: client as u64,
            peer: peer(*user),
            is_idle: *is_idle,
            heard: client as u64,
        };
        users.iter().enumerate().map(seat).collect()
    }

    #[test]
    fn root_and_the_routers_own_user_have_its_rights() {
        assert_eq!((peer(0).rights, peer(OWN).rights), (Rights::default(), Rights::default()));
        assert_eq!(peer(7).rights.trust, Trust::Confined { user: 7, group: 7 });
        assert!(!Peer::tcp().always_gets_in());
    }

    #[test]
    fn a_group_has_a_role() {
        let groups = Groups { operators: 100, read_only: Some(200) };
        let role = |user, its: &[u32]| Peer::new(user, its, groups, OWN).map(|p| p.rights.role);
        assert_eq!(role(7, &[100, 7]), Some(Role::Operator));
        assert_eq!(role(7, &[200, 100]), Some(Role::Operator), "the one that may do more");
        assert_eq!(role(7, &[1, 200]), Some(Role::ReadOnly));
        assert_eq!(role(7, &[1, 7]), None);
        assert_eq!((role(0, &[0]), role(OWN, &[7])), (Some(Role::Operator), Some(Role::Operator)));
        let one = Groups { operators: 100, read_only: None };
        let who_connects = Peer::new(7, &[7], one, OWN).map(|peer| peer.rights.role);
        assert_eq!(who_connects, Some(Role::Operator), "the socket's mode lets in no others");
    }

    #[test]
    fn a_user_who_has_its_share_loses_its_own_idle_client() {
        let seats = seats(&[(1, true), (2, false), (2, true), (2, true)]);
        assert_eq!(entry(peer(2), &seats, 8, 3), Entry::InsteadOf(2));
        assert_eq!(entry(peer(1), &seats, 8, 3), Entry::Free);
        let busy = super::tests::seats(&[(2, false), (2, false), (1, true)]);
        assert_eq!(entry(peer(2), &busy, 8, 2), Entry::Refused);
    }

    #[test]
    fn idle_clients_give_way_when_all_places_are_taken() {
        let full = seats(&[(1, true), (2, true), (2, true), (3, false)]);
        assert_eq!(entry(peer(4), &full, 4, 3), Entry::InsteadOf(1), "of the user with most");
        assert_eq!(entry(peer(0), &full, 4, 3), Entry::InsteadOf(1));
    }

    #[test]
    fn root_gets_in_where_everybody_is_busy_and_others_do_not() {
        let busy = seats(&[(0, false), (1, false), (OWN, false)]);
        assert_eq!(entry(peer(4), &busy, 3, 2), Entry::Refused);
        assert_eq!(entry(peer(0), &busy, 3, 2), Entry::InsteadOf(1));
        assert_eq!(entry(peer(OWN), &seats(&[(0, false), (0, false)]), 2, 2), Entry::InsteadOf(0));
    }
}

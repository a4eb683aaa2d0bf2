//! What a reader makes of bytes, without its thread, for tests that feed it.

use std::collections::BTreeMap;
use std::fmt::Debug;

use quiver_netlink::Messages;

use super::fpm::take_frames;
use super::model::{LinkFacts, Model, NeighbourFacts};
use super::orders::Again;
use super::portion_of;

/// Objects as text: kind and key, and what they are.
pub type Picture = BTreeMap<String, String>;

/// A reader's knowledge.
pub struct Knowledge(Model);

fn put(picture: &mut Picture, kind: &str, key: impl Debug, value: Option<impl Debug>) {
    let key = format!("{kind} {key:?}");
    match value {
        Some(value) => picture.insert(key, format!("{value:?}")),
        None => picture.remove(&key),
    };
}

impl Default for Knowledge {
    fn default() -> Knowledge {
        Knowledge(Model::new())
    }
}

impl Knowledge {
    /// Take the netlink messages of a datagram.
    pub fn take_messages(&mut self, bytes: &[u8]) {
        Messages::of(bytes).for_each(|message| self.0.take(&message));
    }

    /// Take whole FPM frames from the front of `bytes`; how many bytes they are, none when one of
    /// them is wrong.
    pub fn take_frames(&mut self, bytes: &[u8]) -> Option<usize> {
        let model = &mut self.0;
        take_frames(bytes, |body| Messages::of(body).for_each(|message| model.take(&message))).ok()
    }

    /// All is reported anew: what does not come until [`Knowledge::end_dump`] is gone.
    pub fn begin_dump(&mut self) {
        let model = &mut self.0;
        model.links.begin_dump();
        model.addresses.begin_dump();
        model.neighbours.begin_dump();
        model.stations.begin_dump();
        model.objects.begin_dump();
        model.routes.begin_dump();
    }

    /// All was reported.
    pub fn end_dump(&mut self) {
        let model = &mut self.0;
        model.links.sweep();
        model.addresses.sweep();
        model.neighbours.sweep();
        model.stations.sweep();
        model.sweep_objects();
        model.routes.sweep();
    }

    /// Report all of a link again, or routes by a next-hop object.
    pub fn report_again(&mut self, is_link: bool, number: u32) {
        self.0.report_again(if is_link { Again::Link(number) } else { Again::Object(number) });
    }

    /// Report a portion to the keeper of a picture. False when nothing was left to report.
    pub fn report(&mut self, picture: &mut Picture) -> bool {
        let is_some = self.0.unreported() > 0;
        let portion = portion_of(&mut self.0);
        portion.links.into_iter().for_each(|(key, value)| put(picture, "link", key, value));
        for (key, is_there) in portion.addresses {
            put(picture, "address", key, is_there.then_some(()));
        }
        for (key, value) in portion.neighbours {
            put(picture, "neighbour", key, value);
        }
        for (key, value) in portion.stations {
            put(picture, "station", key, value);
        }
        portion.objects.into_iter().for_each(|(key, value)| put(picture, "object", key, value));
        portion.routes.into_iter().for_each(|(key, value)| put(picture, "route", key, value));
        is_some
    }

    /// The picture after all was reported.
    pub fn picture(&self) -> Picture {
        let (model, mut picture) = (&self.0, Picture::new());
        for key in model.links.keys_of(|_, _| true) {
            let facts: Option<LinkFacts> = model.links.get(key).cloned();
            put(&mut picture, "link", key, facts);
        }
        for key in model.addresses.keys_of(|_, ()| true) {
            put(&mut picture, "address", key, Some(()));
        }
        for key in model.neighbours.keys_of(|_, _| true) {
            let facts: Option<NeighbourFacts> = model.neighbours.get(key).copied();
            put(&mut picture, "neighbour", key, facts);
        }
        for key in model.stations.keys_of(|_, _| true) {
            put(&mut picture, "station", key, model.stations.get(key));
        }
        for key in model.objects.keys_of(|_, _| true) {
            put(&mut picture, "object", key, Some(model.hops_of(key)));
        }
        for key in model.routes.used.keys_of(|_, _| true) {
            let value = model.routes.used.get(key).map(|(_, value)| value.clone());
            put(&mut picture, "route", key, value);
        }
        picture
    }
}

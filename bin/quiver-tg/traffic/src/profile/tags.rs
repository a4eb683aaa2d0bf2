//! VLAN tags that a port's frames have: `100`, `[100]`, `[{dot1ad: 10}, 20]`.

use std::fmt;

use super::header;
use super::layers::{Layer, Layers};
use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// Tags of one frame.
pub const TAGS_MAX: usize = 2;

/// One tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag {
    /// IEEE 802.1ad (0x88a8) rather than 802.1Q (0x8100).
    pub is_dot1ad: bool,
    /// 1 to 4094.
    pub id: u16,
}

/// From the outside in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tags(pub Vec<Tag>);

impl Tags {
    /// Bytes of them in a frame.
    pub fn bytes(&self) -> usize {
        4 * self.0.len()
    }

    /// Put them into headers that say no tag of their own.
    pub fn put_on(&self, layers: &mut Layers) {
        let at =
            usize::from(layers.0.first().is_some_and(|layer| layer.spec.is(&header::ETHERNET)));
        let is_tag = |layer: &Layer| matches!(layer.spec.name, "vlan" | "dot1ad");
        if layers.0.get(at).is_some_and(is_tag) {
            return;
        }
        for tag in self.0.iter().rev() {
            if let Some(spec) = header::by_name(if tag.is_dot1ad { "dot1ad" } else { "vlan" }) {
                let mut layer = Layer::new(spec);
                layer.set_default("id", u128::from(tag.id));
                layers.0.insert(at, layer);
            }
        }
    }
}

impl Tag {
    fn new<E: Error>(is_dot1ad: bool, id: u64) -> Result<Tag, E> {
        match id {
            1..=4094 => Ok(Tag { is_dot1ad, id: id as u16 }),
            _ => Err(E::custom(format!("VLAN {id} is outside 1..=4094"))),
        }
    }
}

impl<'de> Deserialize<'de> for Tag {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Tag, D::Error> {
        struct One;
        impl<'de> Visitor<'de> for One {
            type Value = Tag;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a VLAN like 100, {dot1q: 100} or {dot1ad: 10}")
            }
            fn visit_u64<E: Error>(self, id: u64) -> Result<Tag, E> {
                Tag::new(false, id)
            }
            fn visit_i64<E: Error>(self, id: i64) -> Result<Tag, E> {
                Tag::new(false, u64::try_from(id).unwrap_or(0))
            }
            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Tag, M::Error> {
                let wrong = || M::Error::custom("a tag is one of {dot1q: 100} and {dot1ad: 10}");
                let (kind, id): (String, u64) = map.next_entry()?.ok_or_else(wrong)?;
                let is_dot1ad = match kind.as_str() {
                    "dot1q" => false,
                    "dot1ad" => true,
                    _ => return Err(wrong()),
                };
                if map.next_key::<String>()?.is_some() {
                    return Err(wrong());
                }
                Tag::new(is_dot1ad, id)
            }
        }
        deserializer.deserialize_any(One)
    }
}

impl<'de> Deserialize<'de> for Tags {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Tags, D::Error> {
        struct All;
        impl<'de> Visitor<'de> for All {
            type Value = Tags;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a VLAN like 100, or one or two tags like [{dot1ad: 10}, 20]")
            }
            fn visit_u64<E: Error>(self, id: u64) -> Result<Tags, E> {
                Ok(Tags(vec![Tag::new(false, id)?]))
            }
            fn visit_seq<S: SeqAccess<'de>>(self, mut list: S) -> Result<Tags, S::Error> {
                let mut tags = Vec::new();
                while let Some(tag) = list.next_element()? {
                    tags.push(tag);
                    if tags.len() > TAGS_MAX {
                        return Err(S::Error::custom(format!("more than {TAGS_MAX} tags")));
                    }
                }
                Ok(Tags(tags))
            }
        }
        deserializer.deserialize_any(All)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<(bool, u16)>, String> {
        let tags: Result<Tags, _> = serde_saphyr::from_str(text);
        let tags = tags.map_err(|error| error.to_string())?;
        Ok(tags.0.iter().map(|tag| (tag.is_dot1ad, tag.id)).collect())
    }

    #[test]
    fn tags_are_written_as_people_say_them() {
        assert_eq!(read("100"), Ok(vec![(false, 100)]));
        assert_eq!(read("[100]"), Ok(vec![(false, 100)]));
        assert_eq!(read("[{dot1ad: 10}, 20]"), Ok(vec![(true, 10), (false, 20)]));
        assert_eq!(read("[]"), Ok(vec![]));
        assert!(read("[1, 2, 3]").expect_err("three").contains("more than 2"));
        assert!(read("4095").expect_err("reserved").contains("1..=4094"));
        assert!(read("[{vlan: 10}]").expect_err("a word").contains("dot1ad"));
    }
}

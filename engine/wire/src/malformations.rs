//! Declares why a header is refused: variant, short name, sentence.

macro_rules! malformations {
    (
        $(#[$doc:meta])* pub enum $name:ident {
            $($(#[$vdoc:meta])* $variant:ident = $short:literal, $text:literal;)*
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$vdoc])* $variant,)* }

        impl $name {
            /// Every reason, in the order of their numbers (`reason as usize`).
            pub const ALL: &'static [$name] = &[$($name::$variant,)*];

            /// A short name, as in `show errors`.
            pub const fn name(self) -> &'static str {
                match self { $($name::$variant => $short,)* }
            }

            /// A sentence for the operator.
            pub const fn text(self) -> &'static str {
                match self { $($name::$variant => $text,)* }
            }
        }

        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str(self.text())
            }
        }
    };
}

//! The descriptions that come with the program, each with sample replies beside it.

/// A shipped description.
#[derive(Clone, Copy, Debug)]
pub struct ShippedTool {
    pub name: &'static str,
    /// TOML.
    pub description: &'static str,
    /// JSON: replies and what each must mean ([`super::samples`]).
    pub samples: &'static str,
}

/// All of them, by name.
pub const ALL: &[ShippedTool] = &[
    ShippedTool {
        name: "create_ticket",
        description: include_str!("../../assets/tools/create_ticket.toml"),
        samples: include_str!("../../assets/tools/create_ticket.samples.json"),
    },
    ShippedTool {
        name: "send_message",
        description: include_str!("../../assets/tools/send_message.toml"),
        samples: include_str!("../../assets/tools/send_message.samples.json"),
    },
];

//! A hosted zone as a list shows it.

/// A hosted zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostedZone {
    /// Its id, without `/hostedzone/`.
    pub id: String,
    /// Its name, without a dot at the end. Several private zones may have one name.
    pub name: String,
    /// Whether it is of networks, and not of the internet.
    pub private: bool,
}

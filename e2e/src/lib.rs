//! The ground Hyperlink is tested on.

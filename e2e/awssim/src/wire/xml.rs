//! XML: answers as trees of elements, and the reader of Route 53's request bodies.

use quick_xml::escape::{escape, unescape};
use quick_xml::events::Event;
use quick_xml::reader::Reader;

use super::error::AwsError;

/// An element with text or with further elements in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Xml {
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) children: Vec<Xml>,
}

pub(crate) fn text(name: &str, text: impl ToString) -> Xml {
    Xml {
        name: name.to_owned(),
        text: text.to_string(),
        children: vec![],
    }
}

pub(crate) fn group(name: &str, children: Vec<Xml>) -> Xml {
    Xml {
        name: name.to_owned(),
        text: String::new(),
        children,
    }
}

/// A list whose members are structures.
pub(crate) fn list(name: &str, member: &str, items: impl IntoIterator<Item = Vec<Xml>>) -> Xml {
    group(name, items.into_iter().map(|item| group(member, item)).collect())
}

/// A list whose members are texts.
pub(crate) fn texts(name: &str, member: &str, items: impl IntoIterator<Item = impl ToString>) -> Xml {
    group(name, items.into_iter().map(|item| text(member, item)).collect())
}

impl Xml {
    pub(crate) fn write(&self, out: &mut String) {
        let name = &self.name;
        if self.children.is_empty() && self.text.is_empty() {
            out.push_str(&format!("<{name}/>"));
            return;
        }
        out.push_str(&format!("<{name}>{}", escape(&self.text)));
        for child in &self.children {
            child.write(out);
        }
        out.push_str(&format!("</{}>", name.split(' ').next().unwrap_or(name)));
    }

    pub(crate) fn child(&self, name: &str) -> Option<&Xml> {
        self.children.iter().find(|child| child.name == name)
    }

    /// The text of a child.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        self.child(name).map(|child| child.text.as_str())
    }
}

fn malformed(why: impl ToString) -> AwsError {
    AwsError::bad("InvalidInput", format!("Invalid XML ; {}", why.to_string()))
}

/// The deepest nesting that is read.
const DEEPEST: usize = 16;

/// Reads a document. Namespaces and attributes are left out.
///
/// # Errors
/// `InvalidInput` for what is not one well-formed element.
pub(crate) fn parse(document: &[u8]) -> Result<Xml, AwsError> {
    let document = std::str::from_utf8(document).map_err(malformed)?;
    let mut reader = Reader::from_str(document);
    let mut open = vec![group("", vec![])];
    loop {
        match reader.read_event().map_err(malformed)? {
            Event::Start(start) if open.len() <= DEEPEST => {
                open.push(group(start.local_name().into_inner(), vec![]));
            }
            Event::Start(_) => return Err(malformed("nested too deeply")),
            Event::Empty(start) => {
                let element = group(start.local_name().into_inner(), vec![]);
                if let Some(parent) = open.last_mut() {
                    parent.children.push(element);
                }
            }
            Event::End(_) => {
                if let (Some(element), Some(parent)) = (open.pop(), open.last_mut()) {
                    parent.children.push(element);
                }
            }
            Event::Text(content) => {
                if let Some(element) = open.last_mut() {
                    element.text.push_str(&content);
                }
            }
            Event::GeneralRef(reference) => {
                let reference = format!("&{};", &*reference);
                if let Some(element) = open.last_mut() {
                    element.text.push_str(&unescape(&reference).map_err(malformed)?);
                }
            }
            Event::Eof => break,
            _ => {}
        }
    }
    let mut root = open
        .pop()
        .filter(|_| open.is_empty())
        .unwrap_or_else(|| group("", vec![]));
    trim(&mut root);
    root.children
        .pop()
        .filter(|_| root.children.is_empty())
        .ok_or_else(|| malformed("one element is needed"))
}

/// White space between elements is not content.
fn trim(element: &mut Xml) {
    if !element.children.is_empty() {
        element.text.clear();
    }
    element.children.iter_mut().for_each(trim);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let tree = group(
            "A",
            vec![
                text("B", "x < \"y\" & z"),
                group("C", vec![]),
                texts("D", "item", ["1", "2"]),
            ],
        );
        let mut written = String::new();
        tree.write(&mut written);
        assert!(written.contains("&lt;") && written.contains("<C/>"), "{written}");
        assert_eq!(parse(written.as_bytes()).unwrap(), tree);
    }

    #[test]
    fn garbage_is_refused() {
        for garbage in ["", "text", "<a>", "<a></b>", "<a/><b/>", &"<a>".repeat(40)] {
            assert_eq!(parse(garbage.as_bytes()).unwrap_err().code, "InvalidInput", "{garbage}");
        }
    }
}

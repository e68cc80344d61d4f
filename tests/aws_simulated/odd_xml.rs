//! Answers of AWS in another form with the same content.

use quick_xml::events::Event;
use quick_xml::reader::Reader;

/// Lists whose order AWS documents: record sets and zones by their names.
const ORDERED: [&str; 2] = ["ResourceRecordSets", "HostedZones"];

/// An element, whose text stays escaped.
#[derive(Default)]
struct Element {
    name: String,
    text: String,
    children: Vec<Element>,
}

impl Element {
    fn of(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            ..Self::default()
        }
    }

    fn read(body: &str) -> Self {
        let mut reader = Reader::from_str(body);
        let mut open = vec![Self::default()];
        loop {
            let event = reader.read_event().unwrap();
            let inner = open.last_mut().unwrap();
            match event {
                Event::Start(start) => open.push(Self::of(start.local_name().into_inner())),
                Event::Empty(start) => inner.children.push(Self::of(start.local_name().into_inner())),
                Event::Text(text) => inner.text.push_str(&text),
                Event::GeneralRef(reference) => inner.text.push_str(&format!("&{};", &*reference)),
                Event::End(_) => {
                    let closed = open.pop().unwrap();
                    open.last_mut().unwrap().children.push(closed);
                }
                Event::Eof => return open.pop().unwrap().children.pop().unwrap(),
                _ => {}
            }
        }
    }

    fn write(&self, attributes: &str, out: &mut String) {
        let name = &self.name;
        out.push_str(&format!("<a:{name}{attributes}>"));
        if self.children.is_empty() {
            out.push_str(&self.text);
        } else {
            out.push_str("<a:new><a:item/></a:new>");
        }
        if ORDERED.contains(&name.as_str()) {
            self.children.iter().for_each(|child| child.write("", out));
        } else {
            self.children.iter().rev().for_each(|child| child.write("", out));
        }
        out.push_str(&format!("</a:{name}>"));
    }
}

/// The same document with a prefix before each name, an unknown element in each structure, and the others in reverse
/// order where that carries no meaning.
pub(crate) fn rewritten(body: &[u8]) -> Vec<u8> {
    let mut out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n".to_owned();
    let root = Element::read(std::str::from_utf8(body).unwrap());
    root.write(" xmlns:a=\"urn:a\"", &mut out);
    out.into_bytes()
}

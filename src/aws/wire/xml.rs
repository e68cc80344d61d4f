//! XML answers as a tree of bounded depth and size. Elements are found by name, so their order and unknown ones do not
//! matter. Attributes and namespaces are dropped: no answer that is read holds anything in them.

use quick_xml::Reader;
use quick_xml::events::{BytesRef, Event};

/// How deep elements may nest. AWS's answers that are read nest less than a third of it.
const MAX_DEPTH: usize = 32;
/// How many elements an answer may have: more than a page of record sets with as many values as these can have.
const MAX_ELEMENTS: usize = 250_000;

/// Why a body is not the answer that was expected. Holds nothing of the body.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Malformed {
    /// The body is not well-formed, or is cut off.
    #[error("not XML")]
    NotXml,
    /// The body declares a document type or uses an entity that is not one of XML's own.
    #[error("a document type or an entity")]
    Entity,
    /// Elements nest too deep.
    #[error("nested too deep")]
    TooDeep,
    /// There are too many elements.
    #[error("too many elements")]
    TooMany,
    /// The root is another element than expected.
    #[error("another document")]
    OtherRoot,
    /// An element that must be there is missing or empty.
    #[error("no {0}")]
    Missing(&'static str),
    /// An element holds what it cannot hold.
    #[error("{0} cannot be read")]
    Unreadable(&'static str),
}

/// An element with its text and children.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Element {
    name: String,
    text: String,
    children: Vec<Element>,
}

impl Element {
    /// Parses a document.
    ///
    /// # Errors
    /// It is not XML, cut off, nested too deep, too large, or has a document type.
    pub(crate) fn parse(body: &[u8]) -> Result<Self, Malformed> {
        let text = std::str::from_utf8(body).map_err(|_| Malformed::NotXml)?;
        let mut reader = Reader::from_str(text);
        let mut tree = Tree::default();
        loop {
            match reader.read_event().map_err(|_| Malformed::NotXml)? {
                Event::Start(start) => tree.open(start.local_name().as_ref())?,
                Event::Empty(start) => {
                    tree.open(start.local_name().as_ref())?;
                    tree.close()?;
                }
                Event::End(_) => tree.close()?,
                Event::Text(text) => tree.text(&text.xml10_content())?,
                Event::CData(text) => tree.text(&text.xml10_content())?,
                Event::GeneralRef(reference) => tree.text(resolve(&reference)?.encode_utf8(&mut [0; 4]))?,
                Event::DocType(_) => return Err(Malformed::Entity),
                Event::Decl(_) | Event::PI(_) | Event::Comment(_) => {}
                Event::Eof => return tree.finish(),
            }
        }
    }

    /// The element's name, without its namespace.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The element's text, without blanks around it.
    pub(crate) fn text(&self) -> &str {
        self.text.trim()
    }

    /// The first child of this name.
    pub(crate) fn child(&self, name: &str) -> Option<&Self> {
        self.children.iter().find(|child| child.name == name)
    }

    /// The first child of this name.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn required_child(&self, name: &'static str) -> Result<&Self, Malformed> {
        self.child(name).ok_or(Malformed::Missing(name))
    }

    /// The items of a list: the children `item` of the child `list`. An absent list is empty.
    pub(crate) fn items<'a>(&'a self, list: &str, item: &'a str) -> impl Iterator<Item = &'a Self> {
        let list = self.child(list).map(|list| list.children.as_slice());
        list.unwrap_or_default().iter().filter(move |child| child.name == item)
    }

    /// The texts of a list's items.
    pub(crate) fn texts(&self, list: &str, item: &str) -> Vec<String> {
        self.items(list, item).map(|item| item.text().to_owned()).collect()
    }

    /// The text of a child; none if it is absent or empty.
    pub(crate) fn optional(&self, name: &str) -> Option<String> {
        let text = self.child(name)?.text();
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// The text of a child.
    ///
    /// # Errors
    /// It is absent or empty.
    pub(crate) fn required(&self, name: &'static str) -> Result<String, Malformed> {
        self.optional(name).ok_or(Malformed::Missing(name))
    }

    /// A child that is `true` or `false`; false if it is absent.
    ///
    /// # Errors
    /// It is another word.
    pub(crate) fn flag(&self, name: &'static str) -> Result<bool, Malformed> {
        match self.optional(name).as_deref() {
            Some("true") => Ok(true),
            None | Some("false") => Ok(false),
            Some(_) => Err(Malformed::Unreadable(name)),
        }
    }

    /// A child that is a number; none if it is absent.
    ///
    /// # Errors
    /// It is no such number.
    pub(crate) fn number<T: std::str::FromStr>(&self, name: &'static str) -> Result<Option<T>, Malformed> {
        let text = self.optional(name);
        text.map(|text| text.parse().map_err(|_| Malformed::Unreadable(name)))
            .transpose()
    }
}

/// A document that is being read.
#[derive(Debug, Default)]
struct Tree {
    open: Vec<Element>,
    root: Option<Element>,
    elements: usize,
}

impl Tree {
    fn open(&mut self, name: &str) -> Result<(), Malformed> {
        self.elements += 1;
        if self.elements > MAX_ELEMENTS {
            return Err(Malformed::TooMany);
        }
        if self.open.len() >= MAX_DEPTH {
            return Err(Malformed::TooDeep);
        }
        if self.root.is_some() {
            return Err(Malformed::NotXml);
        }
        self.open.push(Element {
            name: name.to_owned(),
            ..Element::default()
        });
        Ok(())
    }

    fn close(&mut self) -> Result<(), Malformed> {
        let closed = self.open.pop().ok_or(Malformed::NotXml)?;
        match self.open.last_mut() {
            Some(parent) => parent.children.push(closed),
            None => self.root = Some(closed),
        }
        Ok(())
    }

    fn text(&mut self, text: &str) -> Result<(), Malformed> {
        match self.open.last_mut() {
            Some(element) => element.text.push_str(text),
            None if text.trim().is_empty() => {}
            None => return Err(Malformed::NotXml),
        }
        Ok(())
    }

    fn finish(self) -> Result<Element, Malformed> {
        self.root.filter(|_| self.open.is_empty()).ok_or(Malformed::NotXml)
    }
}

/// The character that a reference stands for: by number, or one of XML's five names.
fn resolve(reference: &BytesRef<'_>) -> Result<char, Malformed> {
    if reference.is_char_ref() {
        let resolved = reference.resolve_char_ref().map_err(|_| Malformed::NotXml)?;
        return resolved.ok_or(Malformed::NotXml);
    }
    match reference.xml10_content().as_ref() {
        "amp" => Ok('&'),
        "lt" => Ok('<'),
        "gt" => Ok('>'),
        "apos" => Ok('\''),
        "quot" => Ok('"'),
        _ => Err(Malformed::Entity),
    }
}

/// Text as the content of an element.
pub(crate) fn escaped(text: &str) -> String {
    quick_xml::escape::escape(text).into_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    #[test]
    fn elements_are_found_in_any_order_and_unknown_ones_ignored() {
        let root = Element::parse(
            b"<?xml version=\"1.0\"?>\n<A xmlns=\"urn:x\"><new>1</new><set><item>b</item><other/><item> c </item>\
            </set><n:on>true</n:on><count>7</count></A>",
        )
        .unwrap();
        assert_eq!(root.name(), "A");
        assert_eq!(root.texts("set", "item"), ["b", "c"]);
        assert_eq!(root.flag("on"), Ok(true));
        assert_eq!(root.number::<u16>("count"), Ok(Some(7)));
    }

    #[rstest]
    #[case::absent("<A/>")]
    #[case::empty_element("<A><set/></A>")]
    #[case::empty_pair("<A><set>  </set></A>")]
    fn absent_and_empty_are_the_same(#[case] body: &str) {
        let root = Element::parse(body.as_bytes()).unwrap();
        assert_eq!(root.texts("set", "item"), Vec::<String>::new());
        assert_eq!(root.optional("set"), None);
        assert_eq!(root.required("set"), Err(Malformed::Missing("set")));
        assert_eq!(root.flag("set"), Ok(false));
    }

    #[test]
    fn references_and_cdata_are_read_as_text() {
        let root = Element::parse(b"<A><v>a&lt;b&amp;&#x41;&#66;<![CDATA[<c>]]></v></A>").unwrap();
        assert_eq!(root.optional("v").as_deref(), Some("a<b&AB<c>"));
    }

    #[rstest]
    #[case::nothing("", Malformed::NotXml)]
    #[case::words("service unavailable", Malformed::NotXml)]
    #[case::json("{\"a\":1}", Malformed::NotXml)]
    #[case::cut("<A><b>text", Malformed::NotXml)]
    #[case::cut_in_a_tag("<A><b", Malformed::NotXml)]
    #[case::crossed("<A><b></A></b>", Malformed::NotXml)]
    #[case::two_roots("<A/><B/>", Malformed::NotXml)]
    #[case::text_after_the_root("<A/>x", Malformed::NotXml)]
    #[case::document_type("<!DOCTYPE html><A/>", Malformed::Entity)]
    #[case::entity_of_its_own("<!DOCTYPE A [<!ENTITY e \"x\">]><A>&e;</A>", Malformed::Entity)]
    #[case::undeclared_entity("<A>&nbsp;</A>", Malformed::Entity)]
    #[case::character_that_is_none("<A>&#xD800;</A>", Malformed::NotXml)]
    #[case::html_that_is_open("<html><body><br></body></html>", Malformed::NotXml)]
    fn body_that_is_no_answer_is_refused(#[case] body: &str, #[case] why: Malformed) {
        assert_eq!(Element::parse(body.as_bytes()), Err(why));
    }

    #[test]
    fn depth_and_number_of_elements_are_bounded() {
        let deep = format!("{}{}", "<a>".repeat(MAX_DEPTH), "</a>".repeat(MAX_DEPTH));
        assert!(Element::parse(deep.as_bytes()).is_ok());
        let deeper = format!("<a>{deep}</a>");
        assert_eq!(Element::parse(deeper.as_bytes()), Err(Malformed::TooDeep));
        let wide = format!("<a>{}</a>", "<b/>".repeat(MAX_ELEMENTS));
        assert_eq!(Element::parse(wide.as_bytes()), Err(Malformed::TooMany));
        assert_eq!(
            Element::parse("<a>".repeat(2_000_000).as_bytes()),
            Err(Malformed::TooDeep)
        );
    }

    fn depth(element: &Element) -> usize {
        1 + element.children.iter().map(depth).max().unwrap_or_default()
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_bounded_tree_or_an_error(body in prop::collection::vec(any::<u8>(), 0..400)) {
            if let Ok(root) = Element::parse(&body) {
                prop_assert!(depth(&root) <= MAX_DEPTH);
            }
        }

        #[test]
        fn any_pieces_of_xml_are_a_bounded_tree_or_an_error(pieces in prop::collection::vec(
            prop::sample::select(vec!["<a>", "</a>", "<b/>", "&amp;", "&x;", "<![CDATA[", "]]>", "<!--", "-->", "\
            <?xml", "?>", "t", "<", "&#0;"]),
            0..80,
        )) {
            if let Ok(root) = Element::parse(pieces.concat().as_bytes()) {
                prop_assert!(depth(&root) <= MAX_DEPTH);
            }
        }

        #[test]
        fn escaped_text_is_read_back(text in "[^\\s\\p{C}]([^\\p{C}]{0,40}[^\\s\\p{C}])?") {
            let body = format!("<A><v>{}</v></A>", escaped(&text));
            prop_assert_eq!(Element::parse(body.as_bytes()).unwrap().optional("v"), Some(text));
        }
    }
}

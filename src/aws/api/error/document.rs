//! The forms in which AWS's services tell an error.

use hyperlink_engine::text::clean;

use super::MAX_CODE;
use crate::wire::xml::Element;

/// What an error document says.
#[derive(Debug, Default)]
pub(super) struct ErrorBody {
    pub(super) code: String,
    pub(super) text: String,
}

impl ErrorBody {
    /// Reads `<Response><Errors><Error>` of EC2, `<ErrorResponse><Error>` of the others, and the one document of Route
    /// 53 whose root is the code.
    pub(super) fn find(root: &Element) -> Option<Self> {
        let (code, text) = match root.name() {
            "Response" => of_error(root.items("Errors", "Error").next()?),
            "ErrorResponse" => of_error(root.child("Error")?),
            "InvalidChangeBatch" => ("InvalidChangeBatch".into(), root.texts("Messages", "Message").join(" ")),
            _ => return None,
        };
        let request = root.optional("RequestID").or_else(|| root.optional("RequestId"));
        let text = match request {
            // What AWS's support asks for comes first, so that it is not cut off.
            Some(request) => format!("request {}: {text}", clean(&request, MAX_CODE)),
            None => text,
        };
        Some(Self { code, text })
    }
}

fn of_error(error: &Element) -> (String, String) {
    let text = |name| error.optional(name).unwrap_or_default();
    (text("Code"), text("Message"))
}

//! Bytes on the connection: a body that may end too early or lie about its length. Decides nothing; it does what a fault rule says.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

/// The connection is to be closed, now, without another byte.
#[derive(Debug, thiserror::Error)]
#[error("connection closed by a fault rule")]
pub(crate) struct Dropped;

/// A body, whole or broken off.
pub(crate) struct WireBody {
    bytes: Bytes,
    ending: Ending,
}

enum Ending {
    /// The length is known and right.
    Whole,
    /// The `content-length` header promises more than there is: after the bytes the connection breaks.
    Broken,
    /// The bytes were handed over; one more turn lets them reach the socket before it closes.
    Flushing,
}

impl WireBody {
    pub(crate) fn whole(bytes: Bytes) -> Self {
        Self {
            bytes,
            ending: Ending::Whole,
        }
    }

    /// Sends these bytes and breaks the connection. The answer needs a `content-length` header of its own.
    pub(crate) fn broken(bytes: Bytes) -> Self {
        Self {
            bytes,
            ending: Ending::Broken,
        }
    }
}

impl Body for WireBody {
    type Data = Bytes;
    type Error = Dropped;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Dropped>>> {
        if !self.bytes.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut self.bytes)))));
        }
        match self.ending {
            Ending::Whole => Poll::Ready(None),
            Ending::Broken => {
                self.ending = Ending::Flushing;
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            Ending::Flushing => Poll::Ready(Some(Err(Dropped))),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.ending, Ending::Whole) && self.bytes.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        match self.ending {
            Ending::Whole => SizeHint::with_exact(self.bytes.len() as u64),
            Ending::Broken | Ending::Flushing => SizeHint::default(),
        }
    }
}

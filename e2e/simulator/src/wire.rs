//! Bytes on the connection: an answer that comes late or never, a body that ends too early or lies about its length. Decides nothing; it does
//! what a fault rule asks for.

use std::{
    io,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::{Buf as _, Bytes};
use http::{HeaderValue, Response, header};
use hyper::body::{Body, Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::fault::DropWhen;

/// What returns to the caller.
#[derive(Debug)]
pub struct Answer {
    /// The answer, complete but for `Content-Length`.
    pub response: Response<Bytes>,
    /// What the socket does to it.
    pub wire: WireFault,
}

/// Faults that only a socket can show. The default is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WireFault {
    /// Wait this long before anything is sent.
    pub delay: Option<Duration>,
    /// Close the connection without an answer.
    pub drop: Option<DropWhen>,
    /// Send only this many bytes of the body, then close.
    pub cut_body_at: Option<usize>,
    /// Send this `Content-Length` with the real body.
    pub content_length: Option<u64>,
}

/// The connection is to be closed, now, without another byte.
#[derive(Debug, thiserror::Error)]
#[error("connection closed by a fault rule")]
pub struct Dropped;

/// Bytes that follow an answer though its `content-length` does not count them; an extension of the response.
#[derive(Clone)]
pub struct Excess(pub Bytes);

/// A body, whole or broken off.
pub struct WireBody {
    bytes: Bytes,
    ending: Ending,
}

enum Ending {
    /// The length is known and right.
    Whole,
    /// The `content-length` header promises more than there is: after the bytes the connection breaks.
    Broken,
    /// The bytes were handed over; one more poll lets them reach the socket before it closes.
    Flushing,
}

impl WireBody {
    /// Sends all of these bytes.
    pub fn whole(bytes: Bytes) -> Self {
        Self {
            bytes,
            ending: Ending::Whole,
        }
    }

    /// Sends these bytes and breaks the connection. The answer needs a `content-length` header of its own.
    fn broken(bytes: Bytes) -> Self {
        Self {
            bytes,
            ending: Ending::Broken,
        }
    }
}

/// Makes of an answer what the wire is to show of it.
///
/// # Errors
/// Nothing is to be shown.
pub async fn perform(answer: Answer) -> Result<Response<WireBody>, Dropped> {
    let Answer { response, wire } = answer;
    let WireFault {
        delay,
        drop,
        cut_body_at,
        content_length,
    } = wire;
    if let Some(delay) = delay {
        tokio::time::sleep(delay).await;
    }
    if drop.is_some() {
        return Err(Dropped);
    }
    let (mut parts, body) = response.into_parts();
    let mut kept = body.slice(..cut_body_at.map_or(body.len(), |at| at.min(body.len())));
    let promised = content_length.unwrap_or(body.len() as u64);
    if kept.len() as u64 >= promised {
        let excess = kept.split_off(promised as usize);
        if !excess.is_empty() {
            parts.extensions.insert(Excess(excess));
        }
        return Ok(Response::from_parts(parts, WireBody::whole(kept)));
    }
    parts
        .headers
        .insert(header::CONTENT_LENGTH, HeaderValue::from(promised));
    Ok(Response::from_parts(parts, WireBody::broken(kept)))
}

/// A connection's stream, on which bytes can follow an answer that HTTP knows nothing of.
pub struct WireStream<S> {
    stream: S,
    excess: Arc<Mutex<Bytes>>,
}

impl<S> WireStream<S> {
    /// The stream, and where to put what is to follow the next flush.
    pub fn new(stream: S) -> (Self, Arc<Mutex<Bytes>>) {
        let excess = Arc::default();
        let stream = Self {
            stream,
            excess: Arc::clone(&excess),
        };
        (stream, excess)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WireStream<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WireStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { stream, excess } = self.get_mut();
        let mut excess = excess.lock().unwrap_or_else(PoisonError::into_inner);
        while !excess.is_empty() {
            let written = ready!(Pin::new(&mut *stream).poll_write(cx, &excess))?;
            excess.advance(written);
        }
        Pin::new(stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

impl Body for WireBody {
    type Data = Bytes;
    type Error = Dropped;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Dropped>>> {
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

//! What the demo shows: lines with elapsed times, and on a terminal a progress line below them.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// Writes to standard output. The demo ignores write errors, such as a closed pipe.
#[derive(Debug)]
pub struct View {
    live: bool,
    began: Instant,
    progress: String,
}

impl View {
    /// A view that shows progress if standard output is a terminal. Its clock starts now.
    pub fn new() -> Self {
        Self {
            live: std::io::stdout().is_terminal(),
            began: Instant::now(),
            progress: String::new(),
        }
    }

    /// Restarts the clock from zero.
    pub fn restart_clock(&mut self) {
        self.began = Instant::now();
    }

    /// Time since the clock was started.
    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Prints a heading.
    pub fn heading(&self, text: &str) {
        let (bold, plain) = if self.live { ("\x1b[1m", "\x1b[0m") } else { ("", "") };
        self.print(&format!("\n{bold}{text}{plain}"));
    }

    /// Prints a line with the elapsed time.
    pub fn line(&self, text: &str) {
        self.print(&format!("{:>7.1} s  {text}", self.elapsed().as_secs_f64()));
    }

    /// Prints a line without the time.
    pub fn note(&self, text: &str) {
        self.print(text);
    }

    /// Shows what the demo waits for, on a terminal only. The next progress line replaces it.
    pub fn progress(&mut self, text: &str) {
        if self.live {
            text.clone_into(&mut self.progress);
            self.draw_progress();
        }
    }

    fn print(&self, text: &str) {
        let erase = if self.live { "\r\x1b[2K" } else { "" };
        let mut out = std::io::stdout().lock();
        let _ = writeln!(out, "{erase}{text}");
        drop(out);
        self.draw_progress();
    }

    fn draw_progress(&self) {
        if self.live && !self.progress.is_empty() {
            let mut out = std::io::stdout().lock();
            let _ = write!(
                out,
                "\r\x1b[2K{:>7.1} s  … {}",
                self.elapsed().as_secs_f64(),
                self.progress
            );
            let _ = out.flush();
        }
    }
}

impl Default for View {
    fn default() -> Self {
        Self::new()
    }
}

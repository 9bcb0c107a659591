package cli

import (
	"context"
	"io"
	"os"
	"time"

	"golang.org/x/term"
)

// Terminal returns the terminal of a Writer, or nil without cursor control.
func Terminal(w io.Writer) *os.File {
	if u, ok := w.(interface{ Unwrap() io.Writer }); ok {
		w = u.Unwrap()
	}
	f, ok := w.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" || !term.IsTerminal(int(f.Fd())) { //nolint:gosec // a file descriptor
		return nil
	}
	return f
}

// Pause waits for d. It returns false if ctx ends first.
func Pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

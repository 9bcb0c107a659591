package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
)

// clearLine removes what is in the line of a terminal.
const clearLine = "\r\x1b[K"

// Progress shows that an operation is under way: if w is a terminal, and from a second on, a line
// with the time so far, which done removes. Call done before anything else is printed.
func Progress(w io.Writer, what string) (done func()) {
	terminal := Terminal(w)
	if terminal == nil {
		return func() {}
	}
	return progress(terminal, what)
}

// progress is Progress for a terminal.
func progress(w io.Writer, what string) (done func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var shown sync.WaitGroup
	began := time.Now()
	shown.Go(func() {
		for clear := ""; ; clear = clearLine {
			if !Pause(ctx, time.Second) {
				fmt.Fprint(w, clear)
				return
			}
			fmt.Fprintf(w, "%s%s ... %d s", clearLine, what, int(time.Since(began).Seconds()))
		}
	})
	return func() {
		cancel()
		shown.Wait()
	}
}

// Terminal returns the terminal that a Writer writes to, or nil if it is another file or a
// terminal without cursor control.
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

// Pause waits, and reports whether ctx has not ended meanwhile.
func Pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

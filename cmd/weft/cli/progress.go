package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

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
	stop, stopped := make(chan struct{}), make(chan struct{})
	began := time.Now()
	go func() {
		defer close(stopped)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		shown := false
		for {
			select {
			case <-stop:
				if shown {
					fmt.Fprint(w, "\r\x1b[K")
				}
				return
			case <-tick.C:
				shown = true
				fmt.Fprintf(w, "\r\x1b[K%s ... %d s", what, int(time.Since(began).Seconds()))
			}
		}
	}()
	return sync.OnceFunc(func() {
		close(stop)
		<-stopped
	})
}

// Terminal returns the terminal that a Writer writes to, or nil if it is another file or a
// terminal without cursor control.
func Terminal(w io.Writer) *os.File {
	if u, ok := w.(interface{ Unwrap() io.Writer }); ok {
		w = u.Unwrap()
	}
	f, ok := w.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" {
		return nil
	}
	if _, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS); err != nil { //nolint:gosec // a file descriptor
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

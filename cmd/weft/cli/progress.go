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

const clearLine = "\r\x1b[K"

// Progress shows the elapsed time on a terminal after one second. Call done before other output.
func Progress(w io.Writer, what string) (done func()) {
	terminal := Terminal(w)
	if terminal == nil {
		return func() {}
	}
	return progress(terminal, what)
}

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

// Pause returns false if ctx ends meanwhile.
func Pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

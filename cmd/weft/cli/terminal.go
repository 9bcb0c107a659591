package cli

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

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

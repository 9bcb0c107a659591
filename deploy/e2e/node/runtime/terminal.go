package runtime

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
)

func (r *Runtime) executeOnTerminal(ctx context.Context, c *container, e execution, sizes <-chan remotecommand.TerminalSize) (int32, error) {
	ours, theirs, err := openTerminal()
	if err != nil {
		return 0, err
	}
	defer ours.Close()
	if e.stdin != nil {
		go func() { _, _ = io.Copy(ours, e.stdin) }()
	}
	go resize(ours, sizes)
	written := make(chan struct{})
	go func() {
		defer close(written)
		if e.stdout != nil {
			_, _ = io.Copy(e.stdout, ours) // the last read fails after the last process on the terminal
		}
	}()
	exit, err := r.execute(ctx, c, execution{args: e.args, stdin: theirs, stdout: theirs, stderr: theirs, terminal: true})
	theirs.Close()
	select {
	case <-written:
	case <-ctx.Done():
	}
	return exit, err
}

func resize(terminal *os.File, sizes <-chan remotecommand.TerminalSize) {
	for size := range sizes {
		_ = control(terminal, func(fd int) error { // fails when the terminal is closed
			return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: size.Height, Col: size.Width})
		})
	}
}

func openTerminal() (ours, theirs *os.File, err error) {
	const flags = os.O_RDWR | unix.O_NOCTTY
	if ours, err = os.OpenFile("/dev/ptmx", flags, 0); err != nil {
		return nil, nil, fmt.Errorf("open terminal: %w", err)
	}
	var number int
	err = control(ours, func(fd int) (err error) {
		if number, err = unix.IoctlGetInt(fd, unix.TIOCGPTN); err != nil {
			return err
		}
		return unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	})
	if err == nil {
		theirs, err = os.OpenFile("/dev/pts/"+strconv.Itoa(number), flags, 0)
	}
	if err != nil {
		ours.Close()
		return nil, nil, fmt.Errorf("open terminal: %w", err)
	}
	return ours, theirs, nil
}

// Reads of f still end when f is closed.
func control(f *os.File, do func(fd int) error) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	if failed := raw.Control(func(fd uintptr) { err = do(int(fd)) }); failed != nil {
		return failed
	}
	return err
}

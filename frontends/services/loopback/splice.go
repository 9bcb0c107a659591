package loopback

import (
	"errors"
	"io"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// pipes are empty pipes for splice. The copies of io.Copy keep one each while they wait, and the kernel limits
// the memory of a user's pipes.
type pipes chan [2]int

const (
	idlePipes = 16
	// most bytes of a call
	spliceMost = 1 << 20
	pipeSize   = 1 << 18
)

func (p pipes) get() (pipe [2]int, err error) {
	select {
	case pipe = <-p:
		return pipe, nil
	default:
	}
	if err = unix.Pipe2(pipe[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err == nil {
		// A smaller pipe only costs time.
		_, _ = unix.FcntlInt(uintptr(pipe[1]), unix.F_SETPIPE_SZ, pipeSize)
	}
	return pipe, err
}

func (p pipes) put(pipe [2]int) {
	select {
	case p <- pipe:
	default:
		discard(pipe)
	}
}

func discard(pipe [2]int) { _, _ = unix.Close(pipe[0]), unix.Close(pipe[1]) }

// copy copies until the end of src and passes this on. An error resets both connections.
func (p pipes) copy(dst, src *net.TCPConn) {
	err := p.splice(dst, src)
	if errors.Is(err, io.EOF) {
		err = dst.CloseWrite()
	}
	if err != nil {
		for _, c := range []*net.TCPConn{dst, src} {
			_, _ = c.SetLinger(0), c.Close()
		}
	}
}

// splice returns io.EOF after the last byte.
func (p pipes) splice(dst, src *net.TCPConn) error {
	from, err := src.SyscallConn()
	if err != nil {
		return err
	}
	to, err := dst.SyscallConn()
	if err != nil {
		return err
	}
	for err == nil {
		err = p.move(to, from)
	}
	return err
}

// move waits for bytes and moves some.
func (p pipes) move(to, from syscall.RawConn) error {
	var pipe [2]int
	var n int
	// The first call may find that the socket is empty: the pipe is then free for others.
	err := each(from.Read, func(fd int) (err error) {
		if pipe, err = p.get(); err != nil {
			return err
		}
		if n, err = splice(fd, pipe[1], spliceMost); err != nil || n == 0 {
			p.put(pipe)
		}
		return err
	})
	if err == nil && n == 0 {
		err = io.EOF
	}
	if err != nil {
		return err
	}
	for n > 0 && err == nil {
		err = each(to.Write, func(fd int) error {
			moved, err := splice(pipe[0], fd, n)
			n -= moved
			return err
		})
	}
	if err != nil {
		discard(pipe)
		return err
	}
	p.put(pipe)
	return nil
}

// each calls f until its socket is ready. RawConn's wait is of the runtime.
func each(ready func(func(uintptr) bool) error, f func(fd int) error) (err error) {
	closed := ready(func(fd uintptr) bool {
		err = f(int(fd))
		return !errors.Is(err, unix.EAGAIN)
	})
	return errors.Join(closed, err)
}

func splice(from, to, most int) (int, error) {
	for {
		n, err := unix.Splice(from, nil, to, nil, most, unix.SPLICE_F_MOVE|unix.SPLICE_F_NONBLOCK)
		if !errors.Is(err, unix.EINTR) {
			return max(0, int(n)), err
		}
	}
}

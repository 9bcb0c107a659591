package netns

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// Namespace is a network namespace.
type Namespace struct {
	// in errors, unknown to the kernel
	Name   string
	handle netns.NsHandle
	nl     *netlink.Handle
}

// New makes a namespace with loopback up.
func New(name string) (*Namespace, error) {
	n := &Namespace{Name: name, handle: netns.None()}
	err := OnNewThread(func() (err error) {
		if err = unix.Unshare(unix.CLONE_NEWNET); err == nil {
			n.handle, err = netns.GetFromPath("/proc/thread-self/ns/net")
		}
		return err
	})
	if err == nil {
		n.nl, err = netlink.NewHandleAt(n.handle, unix.NETLINK_ROUTE)
	}
	if err == nil {
		err = n.up("lo")
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make network namespace %s: %w", name, err), n.Close())
	}
	return n, nil
}

// Close releases the namespace.
func (n *Namespace) Close() error {
	if n.nl != nil {
		n.nl.Close()
	}
	if !n.handle.IsOpen() {
		return nil
	}
	return n.handle.Close()
}

// FD is valid until Close.
func (n *Namespace) FD() int { return int(n.handle) }

// Do runs f on an OS thread in the namespace, with its child processes and sockets, but not new
// threads and goroutines. f must not call t.FailNow, t.Fatal or t.Skip.
func (n *Namespace) Do(f func() error) error {
	return OnNewThread(func() error {
		if err := unix.Setns(int(n.handle), unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("enter network namespace %s: %w", n.Name, err)
		}
		return f()
	})
}

// OnNewThread runs f on an OS thread that ends with it, because it may be in another namespace or
// have another user. f never runs on the first thread: the runtime does not end it, and it shows
// others the namespaces and the user of the process.
func OnNewThread(f func() error) error {
	err := errors.New("run on a thread: function did not return (runtime.Goexit, t.FailNow?)")
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			defer runtime.UnlockOSThread()
			err = OnNewThread(f)
			return
		}
		err = f()
	}()
	<-done
	return err
}

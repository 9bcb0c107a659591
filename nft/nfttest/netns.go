package nfttest

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// NS is a network namespace of a test.
type NS struct {
	handle netns.NsHandle
}

// New creates a network namespace with loopback up. It is removed after the test, when
// its last socket and process are closed. If the privilege is missing, New skips the test,
// or fails it in CI.
func New(t testing.TB) *NS {
	t.Helper()
	handle, err := newNetNS()
	if err != nil {
		Require(t, Namespaces)
		t.Fatalf("create network namespace: %v", err)
	}
	t.Cleanup(func() { _ = handle.Close() })
	return &NS{handle: handle}
}

// FD returns the file descriptor of the namespace, valid until the test ends.
func (ns *NS) FD() int { return int(ns.handle) }

// Do runs f on an OS thread that is in the namespace, and returns its error.
// Child processes and sockets that f creates are in the namespace; threads and
// goroutines that f starts are not. f runs on a goroutine of its own, so it must not call
// t.FailNow, t.Fatal or t.Skip, but return an error.
func (ns *NS) Do(f func() error) error {
	err := errors.New("run in network namespace: function did not return (runtime.Goexit, t.FailNow?)")
	onFreshThread(func() {
		if serr := unix.Setns(int(ns.handle), unix.CLONE_NEWNET); serr != nil {
			err = fmt.Errorf("enter network namespace: %w", serr)
			return
		}
		err = f()
	})
	return err
}

// Output executes a binary in the namespace with stdin as its input and
// returns its standard output. The error contains its standard error.
func (ns *NS) Output(stdin string, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Env = append(cmd.Environ(), "LC_ALL=C")
	cmd.Stdin = strings.NewReader(stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := ns.Do(cmd.Run); err != nil {
		return stdout.String(), fmt.Errorf("run %s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}

// Run executes a binary in the namespace and returns its standard output. It
// ends the test if that fails.
func (ns *NS) Run(t testing.TB, name string, args ...string) string {
	t.Helper()
	out, err := ns.Output("", name, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Nft passes a ruleset to "nft -f -" in the namespace. It ends the test if nft
// rejects it, and skips the test if there is no nft.
func (ns *NS) Nft(t testing.TB, text string) {
	t.Helper()
	Require(t, NFT)
	if _, err := ns.Output(text, "nft", "-f", "-"); err != nil {
		t.Fatalf("%v\ninput:\n%s", err, text)
	}
}

// ListRuleset returns the output of "nft list ruleset". It also checks that
// "nft -j list ruleset" succeeds, because nft aborts on some expressions that the kernel
// accepts.
func (ns *NS) ListRuleset(t testing.TB) string {
	t.Helper()
	Require(t, NFT)
	ns.Run(t, "nft", "-j", "list", "ruleset")
	return ns.Run(t, "nft", "list", "ruleset")
}

// newNetNS creates a namespace with loopback up on a thread of its own.
func newNetNS() (netns.NsHandle, error) {
	handle, err := netns.None(), errors.New("thread ended early")
	onFreshThread(func() {
		if err = unix.Unshare(unix.CLONE_NEWNET); err != nil {
			err = fmt.Errorf("unshare network namespace: %w", err)
			return
		}
		var h netns.NsHandle
		if h, err = netns.GetFromPath("/proc/thread-self/ns/net"); err != nil {
			err = fmt.Errorf("open network namespace: %w", err)
			return
		}
		if err = loopbackUp(h); err != nil {
			_ = h.Close()
			return
		}
		handle = h
	})
	return handle, err
}

// loopbackUp sets lo up in a namespace.
func loopbackUp(h netns.NsHandle) error {
	nl, err := netlink.NewHandleAt(h, unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("open rtnetlink: %w", err)
	}
	defer nl.Close()
	lo, err := nl.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("find loopback: %w", err)
	}
	if err := nl.LinkSetUp(lo); err != nil {
		return fmt.Errorf("set loopback up: %w", err)
	}
	return nil
}

// onFreshThread runs f on an OS thread that is not reused: the goroutine ends while it is
// locked to the thread, so the runtime ends the thread, which may be in another
// namespace.
func onFreshThread(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		f()
	}()
	<-done
}

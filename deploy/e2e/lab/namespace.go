package lab

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// Namespace is a network namespace that lives while it is open.
type Namespace struct {
	name   string
	file   *os.File
	handle *netlink.Handle
	inside *threads
}

// NewNamespace makes an empty namespace with its loopback up. The name is only for messages.
func NewNamespace(name string) (n *Namespace, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		// The thread is now in the namespace, and ends with this goroutine.
		runtime.LockOSThread()
		if err = unix.Unshare(unix.CLONE_NEWNET); err == nil {
			n, err = CurrentNamespace(name)
		}
	}()
	<-done
	if err != nil {
		return nil, fmt.Errorf("make namespace %s: %w", name, err)
	}
	return n, nil
}

// CurrentNamespace returns the namespace of the calling thread.
func CurrentNamespace(name string) (*Namespace, error) {
	f, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return nil, err
	}
	h, err := netlink.NewHandleAt(netns.NsHandle(f.Fd()), unix.NETLINK_ROUTE)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("open rtnetlink in %s: %w", name, err)
	}
	n := &Namespace{name: name, file: f, handle: h, inside: newThreads()}
	if err := n.prepare(); err != nil {
		n.Close()
		return nil, err
	}
	return n, nil
}

// prepare disables the reverse path filter, because return paths may differ, and duplicate address
// detection, which takes a second.
func (n *Namespace) prepare() error {
	for _, s := range [][2]string{
		{"net/ipv4/ip_forward", "1"},
		{"net/ipv4/conf/all/rp_filter", "0"},
		{"net/ipv4/conf/default/rp_filter", "0"},
		{"net/ipv6/conf/all/forwarding", "1"},
		{"net/ipv6/conf/all/accept_dad", "0"},
		{"net/ipv6/conf/default/accept_dad", "0"},
	} {
		if err := n.Sysctl(s[0], s[1]); err != nil {
			return err
		}
	}
	return n.up("lo")
}

// Name returns the name given at creation.
func (n *Namespace) Name() string { return n.name }

// Close releases the namespace. It ends with its last process and socket.
func (n *Namespace) Close() error {
	n.inside.close()
	n.handle.Close()
	return n.file.Close()
}

// Do calls f on a thread in the namespace. Sockets and processes of f stay there. f must not rely on
// new goroutines, and must not block.
func (n *Namespace) Do(f func() error) error {
	return n.inside.do(int(n.file.Fd()), f)
}

// Sysctl writes a setting by its path below /proc/sys.
func (n *Namespace) Sysctl(path, value string) error {
	return n.Do(func() error {
		if err := os.WriteFile(filepath.Join("/proc/sys", path), []byte(value), 0); err != nil {
			return fmt.Errorf("set %s in %s: %w", path, n.name, err)
		}
		return nil
	})
}

// Run returns the standard output of a program. The error has its standard error.
func (n *Namespace) Run(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	var out, errout strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errout
	if err := n.Do(cmd.Start); err != nil {
		return "", fmt.Errorf("start %s in %s: %w", name, n.name, err)
	}
	if err := cmd.Wait(); err != nil {
		return out.String(), fmt.Errorf("run %s in %s: %w: %s", strings.Join(cmd.Args, " "), n.name, err, strings.TrimSpace(errout.String()))
	}
	return out.String(), nil
}

package nfttest

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/testing/nfttest/netns"
)

// Need is a requirement of a test.
type Need int

const (
	// Namespaces is CAP_SYS_ADMIN and CAP_NET_ADMIN.
	Namespaces Need = iota
	// NFT is the nft(8) binary.
	NFT
	// Users is the privilege to become another user, missing in a user namespace with a single
	// user.
	Users
)

var needs = [...]struct {
	name, hint string
	probe      func() error
}{
	Namespaces: {"privilege to create network namespaces", "run as root or under unshare -rn", func() error {
		h, err := netns.New("probe")
		if err != nil {
			return err
		}
		return h.Close()
	}},
	NFT: {"nft binary", "install it", func() error { _, err := exec.LookPath("nft"); return err }},
	Users: {"other users", "run as root", func() error {
		cmd := exec.Command("true")
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 1, Gid: 1}}
		return cmd.Run()
	}},
}

// Require skips the test if the machine lacks a need, or fails it with CI=true (or 1) in the
// environment.
func Require(t testing.TB, wanted ...Need) {
	t.Helper()
	for _, n := range wanted {
		err := needs[n].probe()
		if err == nil {
			continue
		}
		err = fmt.Errorf("missing %s (%s): %w", needs[n].name, needs[n].hint, err)
		if ci, _ := strconv.ParseBool(os.Getenv("CI")); ci {
			t.Fatalf("require in CI: %v", err)
		} else {
			t.Skip(err)
		}
		return
	}
}

// RequireKernel skips the test, in CI too, if the kernel is older.
func RequireKernel(t testing.TB, major, minor int) {
	t.Helper()
	if !KernelIs(t, major, minor) {
		t.Skipf("this kernel is older than %d.%d", major, minor)
	}
}

// KernelIs reports whether the kernel has at least a version.
func KernelIs(t testing.TB, major, minor int) bool {
	t.Helper()
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		t.Fatal(err)
	}
	release := unix.ByteSliceToString(u.Release[:])
	var a, b int
	if _, err := fmt.Sscanf(release, "%d.%d", &a, &b); err != nil {
		t.Fatalf("kernel %q: %v", release, err)
	}
	return a > major || a == major && b >= minor
}

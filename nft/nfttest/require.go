package nfttest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"

	"github.com/weft-proxy/weft/nft/nfttest/netns"
)

// Need is a requirement of a test that a machine may lack.
type Need int

// The needs of tests.
const (
	// Namespaces is the privilege to create and configure network namespaces
	// (CAP_SYS_ADMIN and CAP_NET_ADMIN).
	Namespaces Need = iota
	// NFT is the nft(8) binary.
	NFT
	// Conntrack is the conntrack(8) binary.
	Conntrack
	// Users is the privilege to become another user. A user namespace with a single
	// user does not have it.
	Users
)

// needs describe each Need: its name, how to get it, and a function that returns why it
// is missing.
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
	NFT:       {"nft binary", "install it", func() error { _, err := exec.LookPath("nft"); return err }},
	Conntrack: {"conntrack binary", "install it", func() error { _, err := exec.LookPath("conntrack"); return err }},
	Users: {"other users", "run as root", func() error {
		cmd := exec.Command("true")
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 1, Gid: 1}}
		return cmd.Run()
	}},
}

// known reports whether the need is one of the constants.
func (n Need) known() bool { return n >= 0 && int(n) < len(needs) }

// String returns the need as it is printed for a skipped test.
func (n Need) String() string {
	if !n.known() {
		return fmt.Sprintf("need(%d)", int(n))
	}
	return needs[n].name
}

// MissingError says that the machine lacks a Need.
type MissingError struct {
	Need Need
	// Err is why it is missing.
	Err error
}

// Error returns what is missing and how to get it.
func (e *MissingError) Error() string {
	hint := "install it"
	if e.Need.known() {
		hint = needs[e.Need].hint
	}
	return fmt.Sprintf("missing %s (%s): %v", e.Need, hint, e.Err)
}

// Unwrap returns the cause.
func (e *MissingError) Unwrap() error { return e.Err }

// Missing returns a *MissingError for the first of the needs that the machine
// lacks, or nil.
func Missing(wanted ...Need) error {
	for _, n := range wanted {
		err := errors.New("unknown need")
		if n.known() {
			err = needs[n].probe()
		}
		if err != nil {
			return &MissingError{Need: n, Err: err}
		}
	}
	return nil
}

// Require skips the test if the machine lacks one of the needs. If the environment
// has CI=true (or 1), the test fails instead, so that no test is skipped everywhere.
func Require(t testing.TB, wanted ...Need) {
	t.Helper()
	err := Missing(wanted...)
	if err == nil {
		return
	}
	if ci, _ := strconv.ParseBool(os.Getenv("CI")); ci {
		t.Fatalf("require in CI: %v", err)
	} else {
		t.Skip(err)
	}
}

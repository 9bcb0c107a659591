package nfttest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
)

// Need is something that a test cannot run without.
type Need int

// The needs that tests have.
const (
	// Namespaces is the privilege to make and configure network namespaces
	// (CAP_SYS_ADMIN and CAP_NET_ADMIN).
	Namespaces Need = iota
	// NFT is the nft(8) binary.
	NFT
	// Conntrack is the conntrack(8) binary.
	Conntrack
	// Users is the privilege to become other users, of which a user namespace
	// with a single one has none.
	Users
)

// String names the need as it is printed in a skip.
func (n Need) String() string {
	switch n {
	case Namespaces:
		return "privilege to make network namespaces"
	case NFT:
		return "nft binary"
	case Conntrack:
		return "conntrack binary"
	case Users:
		return "other users"
	default:
		return fmt.Sprintf("need(%d)", int(n))
	}
}

// MissingError says that the machine lacks what a test needs.
type MissingError struct {
	Need Need
	// Err is why it is missing.
	Err error
}

// Error says what is missing and how to get it.
func (e *MissingError) Error() string {
	hint := "install it"
	switch e.Need {
	case Namespaces:
		hint = "run as root or under unshare -rn"
	case Users:
		hint = "run as root"
	}
	return fmt.Sprintf("missing %s (%s): %v", e.Need, hint, e.Err)
}

// Unwrap returns the cause.
func (e *MissingError) Unwrap() error { return e.Err }

// Missing returns a *MissingError for the first of the needs that the machine
// cannot fulfil, or nil.
func Missing(needs ...Need) error {
	for _, n := range needs {
		if err := probe(n); err != nil {
			return &MissingError{Need: n, Err: err}
		}
	}
	return nil
}

// Require skips the test when one of the needs is missing; where the
// environment says CI=true (or 1) the test fails instead, so that no test is
// silently skipped everywhere.
func Require(t testing.TB, needs ...Need) {
	t.Helper()
	err := Missing(needs...)
	if err == nil {
		return
	}
	if ci, _ := strconv.ParseBool(os.Getenv("CI")); ci {
		t.Fatalf("require in CI: %v", err)
	} else {
		t.Skip(err)
	}
}

// probe returns why a need is not fulfilled, or nil.
func probe(n Need) error {
	switch n {
	case Namespaces:
		h, err := newNetNS()
		if err != nil {
			return err
		}
		return h.Close()
	case NFT:
		_, err := exec.LookPath("nft")
		return err
	case Conntrack:
		_, err := exec.LookPath("conntrack")
		return err
	case Users:
		cmd := exec.Command("true")
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 1, Gid: 1}}
		return cmd.Run()
	default:
		return errors.New("unknown need")
	}
}

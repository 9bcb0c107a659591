package main

import (
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// TestCleanupElsewhere: a socket leads to the weft of another network namespace, whose tables are not
// those that are to go.
func TestCleanupElsewhere(t *testing.T) {
	nfttest.Require(t, nfttest.Namespaces)
	socket := filepath.Join(t.TempDir(), "weft.sock")
	if err := checkNetwork(socket); err != nil {
		t.Errorf("without a weft: %v", err)
	}
	l, err := net.Listen("unix", socket)
	must(t, err)
	defer l.Close()
	if err := checkNetwork(socket); err != nil {
		t.Errorf("in the same network namespace: %v", err)
	}
	elsewhere := exec.Command("sleep", "60")
	must(t, nfttest.New(t).Do(elsewhere.Start))
	defer func() { _ = elsewhere.Process.Kill(); _ = elsewhere.Wait() }()
	if err := sameNetwork(int32(elsewhere.Process.Pid)); err == nil || !strings.Contains(err.Error(), "is of another network namespace") { //nolint:gosec // a process
		t.Errorf("in another network namespace: %v", err)
	}
}

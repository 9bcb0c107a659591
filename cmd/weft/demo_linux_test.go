package main

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// TestDemo runs the demo as a user does, in a binary of its own: each of its
// steps is a test.
//
// Policy behaviour: 39.
func TestDemo(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	weft := filepath.Join(t.TempDir(), "weft")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", weft, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	cmd := exec.CommandContext(t.Context(), weft, "demo")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	t.Logf("weft demo:\n%s", out.String())
	if err != nil {
		t.Fatalf("weft demo: %v", err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if last := lines[len(lines)-1]; len(lines) > 38 || !strings.Contains(last, "passed, 0 failed") {
		t.Errorf("weft demo: %d lines, want at most 38, and the verdict at the end; got %q", len(lines), last)
	}
	if strings.Contains(out.String(), "SKIP") && !strings.Contains(out.String(), "no IPv6") && !strings.Contains(out.String(), "no table owners") {
		t.Error("weft demo has left out a step that this machine could run")
	}
}

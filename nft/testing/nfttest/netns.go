package nfttest

import (
	"bytes"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/nft/testing/nfttest/netns"
)

// NS is a network namespace of a test.
type NS struct {
	*netns.Namespace
}

// New creates a network namespace for the test, until its last socket and process are closed.
// Without the privilege it skips the test, or fails it in CI.
func New(t testing.TB) *NS {
	t.Helper()
	ns, err := netns.New(t.Name())
	if err != nil {
		Require(t, Namespaces)
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ns.Close() })
	return &NS{ns}
}

// Output runs a binary in the namespace. The error contains its standard error.
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

// Run is Output, but ends the test on failure.
func (ns *NS) Run(t testing.TB, name string, args ...string) string {
	t.Helper()
	out, err := ns.Output("", name, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Nft runs "nft -f -". It ends the test if nft rejects the text, and skips it without nft.
func (ns *NS) Nft(t testing.TB, text string) {
	t.Helper()
	Require(t, NFT)
	if _, err := ns.Output(text, "nft", "-f", "-"); err != nil {
		t.Fatalf("%v\ninput:\n%s", err, text)
	}
}

// ListRuleset also checks "nft -j list ruleset", because nft aborts on some expressions that the
// kernel accepts.
func (ns *NS) ListRuleset(t testing.TB) string {
	t.Helper()
	Require(t, NFT)
	ns.Run(t, "nft", "-j", "list", "ruleset")
	return ns.Run(t, "nft", "list", "ruleset")
}

package publish

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/time/rate"

	"github.com/weft-proxy/weft/aggregator"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/nft/kernel"
)

// restart stops a daemon, has the kernel lose everything, and starts another one
// on the same socket.
func restart(t *testing.T, k *aggregatortest.Kernel, d *aggregatortest.Daemon) *aggregatortest.Daemon {
	t.Helper()
	if err := d.Stop(); err != nil {
		t.Fatal(err)
	}
	k.Flush()
	return aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k, StateDir: t.TempDir(), Rate: rate.Inf}, Socket: d.Socket})
}

// expect says a line and checks its answer: an error with this text, or none.
func (c *conversation) expect(line, text string) parsed {
	c.t.Helper()
	c.say(line)
	a := c.hear()
	if (a.Error == "") != (text == "") || !strings.Contains(a.Error, text) {
		c.t.Fatalf("answer to %s:\n%+v\nwant an error with %q", line, a, text)
	}
	return a
}

func awaitElements(t *testing.T, k *aggregatortest.Kernel, want ...string) {
	t.Helper()
	aggregatortest.Eventually(t, fmt.Sprintf("the kernel has %v", want), func() bool {
		return slices.Equal(k.Elements(demo, "blocked"), want)
	})
}

// TestFragmentThatWasReplacedIsPutBack has the publisher's fragment replaced and
// deleted by calls behind the session's back.
func TestFragmentThatWasReplacedIsPutBack(t *testing.T) {
	k := &aggregatortest.Kernel{}
	d := start(t, k)
	c := converse(t, d, 0)
	c.expect(declare, "")
	cl := d.Dial(t, "tester")
	if _, err := cl.Apply(aggregatortest.Context(t), &weftv1.Fragment{Name: "list", Nft: "table ip demo { set blocked { type ipv4_addr; flags interval; elements = { 10.9.9.9 }; }; }"}); err != nil {
		t.Fatal(err)
	}
	awaitElements(t, k, "10.9.9.9")
	c.say(patchLine(2, "10.0.0.2", ""))
	c.say(patchLine(3, "nonsense", ""))
	c.say(patchLine(4, "10.0.0.4", "10.0.0.2"))
	for i, bad := range []bool{false, true, false} {
		if a := c.hear(); (a.Error != "") != bad {
			t.Fatalf("answer %d: %+v", i+2, a)
		}
	}
	awaitElements(t, k, "10.0.0.1", "10.0.0.4")
	if _, err := cl.Delete(aggregatortest.Context(t), "", "list"); err != nil {
		t.Fatal(err)
	}
	c.expect(patchLine(5, "10.0.0.5", ""), "")
	awaitElements(t, k, "10.0.0.1", "10.0.0.4", "10.0.0.5")
}

// TestSecondInstanceTakesOver runs the same publisher twice: the first one is
// told, and does not take the fragment back, not even after a restart.
func TestSecondInstanceTakesOver(t *testing.T) {
	k := &aggregatortest.Kernel{}
	d := start(t, k)
	first, second := converse(t, d, 0), converse(t, d, 0)
	first.expect(declare, "")
	second.expect(strings.ReplaceAll(declare, "10.0.0.1", "10.0.0.2"), "")
	if a := first.expect(patchLine(2, "10.0.0.3", ""), "another stream"); a.Violations[0]["reason"] != "REASON_TAKEN_OVER" {
		t.Errorf("violations %v", a.Violations)
	}
	restart(t, k, d)
	awaitElements(t, k, "10.0.0.2")
	first.expect(patchLine(3, "10.0.0.3", ""), "another stream")
	second.expect(patchLine(2, "10.0.0.4", ""), "")
	awaitElements(t, k, "10.0.0.2", "10.0.0.4")
	first.expect(declare, "")
	first.expect(patchLine(5, "10.0.0.5", ""), "")
	awaitElements(t, k, "10.0.0.1", "10.0.0.5")
}

// TestResyncThatIsRefusedIsTriedAgain has the kernel refuse what it had before a
// restart, for a while.
func TestResyncThatIsRefusedIsTriedAgain(t *testing.T) {
	var full atomic.Bool
	k := &aggregatortest.Kernel{Refuse: func(op kernel.Op) (syscall.Errno, string) {
		if _, ok := op.(kernel.AddElements); ok && full.Load() {
			return syscall.ENFILE, ""
		}
		return 0, ""
	}}
	d := start(t, k)
	c := converse(t, d, 0)
	c.expect(declare, "")
	full.Store(true)
	restart(t, k, d)
	aggregatortest.Eventually(t, "a patch is refused for want of its fragment", func() bool {
		c.say(patchLine(2, "10.0.0.2", ""))
		a := c.hear()
		return strings.Contains(a.Error, "could not be sent again after a reconnect") && len(a.Violations) == 1
	})
	full.Store(false)
	awaitElements(t, k, "10.0.0.1")
	c.expect(patchLine(3, "10.0.0.3", ""), "")
	awaitElements(t, k, "10.0.0.1", "10.0.0.3")
	c.expect(`{"id": 4, "withdraw": "list"}`, "")
	awaitElements(t, k)
}

// TestWithdrawnFragmentStaysAway withdraws before a restart.
func TestWithdrawnFragmentStaysAway(t *testing.T) {
	k := &aggregatortest.Kernel{}
	d := start(t, k)
	c := converse(t, d, 0)
	c.expect(declare, "")
	c.expect(`{"id": 2, "withdraw": "list"}`, "")
	restart(t, k, d)
	c.expect(patchLine(3, "10.0.0.3", ""), "send a snapshot first")
	c.expect(`{"id": 4, "snapshot": {"name": "other", "nft": "table ip other { chain c { }; }"}}`, "")
	if k.Elements(demo, "blocked") != nil {
		t.Fatalf("the withdrawn fragment is back:\n%s", k)
	}
}

// TestCallerThatMayNotPublishIsTold uses a name that no publisher can have.
func TestCallerThatMayNotPublishIsTold(t *testing.T) {
	d := start(t, &aggregatortest.Kernel{})
	var out strings.Builder
	result, err := Run(aggregatortest.Context(t), Config{Client: d.Dial(t, "No Name"), In: strings.NewReader(declare + "\n" + declare), Out: &out})
	if err != nil || result.Refused != 2 || strings.Count(out.String(), "publisher name") != 2 {
		t.Fatalf("%+v, %v:\n%s", result, err, out.String())
	}
}

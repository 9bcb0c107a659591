package aggregator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/weft-proxy/weft/aggregator"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/statedir"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/conntrack"
	"github.com/weft-proxy/weft/nft/kernel"
)

// storedContents returns what the next start would find in a state directory if the process
// was killed now. No write to the directory may be under way.
func storedContents(t *testing.T, dir string) *statedir.Contents {
	t.Helper()
	beside := t.TempDir()
	if err := os.CopyFS(beside, os.DirFS(dir)); err != nil {
		t.Error(err)
		return &statedir.Contents{}
	}
	d := openState(beside, func(kind string) { t.Errorf("the state directory is damaged: %s", kind) })
	c, err := d.Load()
	if err != nil {
		t.Error(err)
		return &statedir.Contents{}
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	return c
}

// recordText returns a record for comparison.
func recordText(t *testing.T, c *statedir.Contents) string {
	t.Helper()
	text, err := json.Marshal(c.Record)
	must(t, err)
	return string(text)
}

// watchful is a kernel that reads the state directory at each commit, before it takes effect.
type watchful struct {
	aggregatortest.Kernel
	t   *testing.T
	dir string

	mu   sync.Mutex
	seen []*statedir.Contents
}

func (k *watchful) Commit(ops []kernel.Op) (kernel.Stats, error) {
	stored := storedContents(k.t, k.dir)
	k.mu.Lock()
	k.seen = append(k.seen, stored)
	k.mu.Unlock()
	return k.Kernel.Commit(ops)
}

// take returns what was stored at each commit since the last call.
func (k *watchful) take() []*statedir.Contents {
	k.mu.Lock()
	defer k.mu.Unlock()
	seen := k.seen
	k.seen = nil
	return seen
}

// noFlows is a conntrack table without entries.
type noFlows struct{}

func (noFlows) Flush(context.Context, []conntrack.Change) (int, error)          { return 0, nil }
func (noFlows) Reconcile(context.Context, []conntrack.Destination) (int, error) { return 0, nil }

// TestRecordIsStoredBeforeTheCommit has the process killed, as it were, at each commit: what
// the state directory has then must describe what the commit leads to.
func TestRecordIsStoredBeforeTheCommit(t *testing.T) {
	dir := t.TempDir()
	k := &watchful{t: t, dir: dir}
	start := func() *aggregatortest.Daemon {
		return aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k, StateDir: dir, Flows: noFlows{}}})
	}
	d := start()
	ctx := aggregatortest.Context(t)
	// described checks the last commit against what is stored after it, and returns its record.
	described := func(what string, commits int) string {
		t.Helper()
		seen := k.take()
		if len(seen) < commits {
			t.Fatalf("%s: %d commits, want %d", what, len(seen), commits)
		}
		last, after := seen[len(seen)-1], storedContents(t, dir)
		text := recordText(t, last)
		if got := recordText(t, after); got != text {
			t.Errorf("%s: at the commit the record was\n%s\nafter it\n%s", what, text, got)
		}
		if last.Revision < after.Revision {
			t.Errorf("%s: at the commit revision %d is reserved, after it %d", what, last.Revision, after.Revision)
		}
		for i, c := range seen {
			if !c.Trusted {
				t.Errorf("%s: at commit %d of %d the record is not trusted", what, i+1, len(seen))
			}
			if i < len(seen)-1 && recordText(t, c) == text {
				t.Errorf("%s: at commit %d of %d the record has the update already: %s", what, i+1, len(seen), text)
			}
		}
		return text
	}
	durable := func(name string, chains ...string) *weftv1.Fragment {
		f := blocklist(name, "10.0.0.1")
		f.Tables[0].Name, f.Lifetime = name, weftv1.Lifetime_LIFETIME_DURABLE
		for _, c := range chains {
			f.Tables[0].Chains = append(f.Tables[0].Chains, &weftv1.Chain{Name: c})
		}
		return f
	}
	apply := func(f *weftv1.Fragment) {
		t.Helper()
		_, err := d.Aggregator.Apply(ctx, "p", f)
		must(t, err)
	}
	apply(blocklist("sticky", "10.0.0.1"))
	if text := described("a new fragment", 1); !strings.Contains(text, `"name":"sticky"`) || !strings.Contains(text, `"name":"blocked"`) {
		t.Errorf("the record lacks the fragment: %s", text)
	}
	apply(durable("durable", "one", "two"))
	described("a durable fragment", 1)
	apply(durable("durable", "two", "three"))
	if text := described("a durable update", 1); strings.Contains(text, `"one"`) || !strings.Contains(text, `"three"`) {
		t.Errorf("the record has the former chains: %s", text)
	}
	large := listOf("large", manyElements)
	large.Tables[0].Name = "large"
	apply(large)
	if text := described("a staged fragment", 3); !strings.Contains(text, `"name":"large"`) {
		t.Errorf("the record lacks the staged fragment: %s", text)
	}
	_, err := d.Aggregator.Delete(ctx, "p", "large")
	must(t, err)
	if text := described("a deletion", 1); strings.Contains(text, `"name":"large"`) {
		t.Errorf("the record has the deleted fragment: %s", text)
	}
	// The kernel has less than the state directory: the start commits what is missing.
	must(t, d.Stop())
	k.Flush()
	d = start()
	if text := described("a start", 1); !strings.Contains(text, `"name":"durable"`) {
		t.Errorf("the record of the start lacks the durable fragment: %s", text)
	}
}

// TestFlowsAreNotedBeforeTheCommit has a destination lose its backends: the state directory
// names it at that commit.
func TestFlowsAreNotedBeforeTheCommit(t *testing.T) {
	dir := t.TempDir()
	k := &watchful{t: t, dir: dir}
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k, StateDir: dir, Flows: noFlows{}}})
	ctx := aggregatortest.Context(t)
	for _, elements := range [][]string{{dnsTo1, otherTo1}, {otherTo1}} {
		f := fronts(elements...)
		_, err := d.Aggregator.Apply(ctx, "p", f)
		must(t, err)
	}
	seen := k.take()
	if got := fmt.Sprint(seen[0].Flows); got != "[]" {
		t.Errorf("the first commit has noted %s", got)
	}
	if got := fmt.Sprint(seen[1].Flows); got != "[{10.96.0.1 53 [10.1.0.1:8080] false map[] false}]" {
		t.Errorf("the commit that leaves a destination without backends has noted %s", got)
	}
}

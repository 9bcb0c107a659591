package aggregator_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/weft-proxy/weft/aggregator"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// ports is a fragment with a map from ports to verdicts, and a rule with it.
func ports(name string, priority int32, entries ...string) *weftv1.Fragment {
	m := &weftv1.Set{Name: "ports", Type: "inet_service : verdict"}
	for _, e := range entries {
		key, value, _ := strings.Cut(e, " : ")
		m.Elements = append(m.Elements, &weftv1.Element{Key: key, Value: value})
	}
	return &weftv1.Fragment{Name: name, Priority: priority, Tables: []*weftv1.Table{{
		Family: "ip", Name: "demo", Comment: "shared", Maps: []*weftv1.Set{m},
		Chains: []*weftv1.Chain{{
			Name: "input", Type: "filter", Hook: "input", Priority: "filter", Policy: "accept",
			Rules: []*weftv1.Rule{{Text: "tcp dport vmap @ports", Comment: "of " + name}},
		}},
	}}}
}

func TestGetTable(t *testing.T) {
	k := &aggregatortest.Kernel{}
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k}})
	ctx := aggregatortest.Context(t)
	for publisher, f := range map[string]*weftv1.Fragment{
		"late":  ports("p", 10, "80 : drop", "443 : accept"),
		"early": ports("p", -10, "22 : accept", "80 : accept"),
	} {
		applyAs(t, d, publisher, f)
	}
	got, err := getTable(ctx, d, "ip", "demo", false)
	must(t, err)
	early, late := &weftv1.FragmentName{Publisher: "early", Name: "p"}, &weftv1.FragmentName{Publisher: "late", Name: "p"}
	both := []*weftv1.FragmentName{early, late}
	handles := k.Handles(demo, "input")
	want := &weftv1.GetTableResponse{
		Revision: d.Aggregator.Revision(),
		Status: &weftv1.TableStatus{
			Family: "ip", Name: "demo", Comment: "shared", Fragments: both, Chains: 1, Rules: 2, Sets: 1, Elements: 3, Shadowed: 1,
		},
		Chains: []*weftv1.MergedChain{{
			Chain:     &weftv1.Chain{Name: "input", Type: "filter", Hook: "input", Priority: "filter", Policy: "accept"},
			Fragments: both,
			Rules: []*weftv1.MergedRule{
				{Rule: &weftv1.Rule{Text: "tcp dport vmap @ports", Comment: "of p"}, Fragment: early, Handle: handles[0]},
				{Rule: &weftv1.Rule{Text: "tcp dport vmap @ports", Comment: "of p"}, Fragment: late, Handle: handles[1]},
			},
		}},
		Sets: []*weftv1.MergedSet{{
			Set: &weftv1.Set{Name: "ports", Type: "inet_service : verdict", Elements: []*weftv1.Element{
				{Key: "22", Value: "accept"}, {Key: "80", Value: "accept"}, {Key: "443", Value: "accept"},
			}},
			Map: true, Fragments: both,
		}},
	}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Fatalf("table (-want +got):\n%s", diff)
	}
	terse, err := getTable(ctx, d, "ip", "demo", true)
	if err != nil || len(terse.GetSets()[0].GetSet().GetElements()) != 0 || terse.GetStatus().GetElements() != 3 {
		t.Fatalf("terse table is %v, error %v: want no elements and their number", terse, err)
	}
	list, err := d.Aggregator.ListTables(ctx, aggregator.Reader{All: true})
	must(t, err)
	if diff := cmp.Diff([]*weftv1.TableStatus{want.GetStatus()}, list.GetTables(), protocmp.Transform()); diff != "" {
		t.Fatalf("tables (-want +got):\n%s", diff)
	}
}

// getTable joins the parts of a table.
func getTable(ctx context.Context, d *aggregatortest.Daemon, family, name string, terse bool) (*weftv1.GetTableResponse, error) {
	whole := &weftv1.GetTableResponse{}
	parts, err := d.Aggregator.GetTable(ctx, &weftv1.GetTableRequest{Family: family, Name: name, Terse: terse}, aggregator.Reader{All: true})
	if err != nil {
		return nil, err
	}
	for part := range parts {
		whole.Join(part)
	}
	return whole, nil
}

func TestGetTableErrors(t *testing.T) {
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: &aggregatortest.Kernel{}}})
	ctx := aggregatortest.Context(t)
	if _, err := d.Aggregator.GetTable(ctx, &weftv1.GetTableRequest{Family: "ip", Name: "none"}, aggregator.Reader{All: true}); !errors.Is(err, aggregator.ErrNoObject) {
		t.Errorf("error is %v: want ErrNoObject", err)
	}
	if _, err := d.Aggregator.GetTable(ctx, &weftv1.GetTableRequest{Family: "ipx", Name: "none"}, aggregator.Reader{All: true}); !errors.Is(err, aggregator.ErrInvalidName) {
		t.Errorf("error is %v: want ErrInvalidName", err)
	}
}

var handleComment = regexp.MustCompile(`^(.*) # handle (\d+)$`)

// TestKernelGetTable compares with what nft lists, before a restart and after,
// when the kernel alone knows what is there.
func TestKernelGetTable(t *testing.T) {
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	ns := nfttest.New(t)
	state := t.TempDir()
	d, conn := startKernel(t, ns, aggregator.Config{StateDir: state}, false)
	ctx := aggregatortest.Context(t)
	applyAs(t, d, "a", ports("p", 0, "80 : drop"))
	applyAs(t, d, "b", counted("10.0.0.1"))
	var want []string
	for line := range strings.Lines(ns.Run(t, "nft", "-a", "list", "chain", "ip", "demo", "input")) {
		if m := handleComment.FindStringSubmatch(strings.TrimSpace(line)); m != nil && !strings.HasPrefix(m[1], "chain") && !strings.HasPrefix(m[1], "table") {
			want = append(want, m[2])
		}
	}
	read := func(d *aggregatortest.Daemon) (got []string, table *weftv1.GetTableResponse) {
		table, err := getTable(ctx, d, "ip", "demo", false)
		must(t, err)
		for _, r := range table.GetChains()[0].GetRules() {
			got = append(got, strconv.FormatUint(r.GetHandle(), 10))
		}
		return got, table
	}
	got, table := read(d)
	if diff := cmp.Diff(want, got); diff != "" || len(got) != 3 {
		t.Fatalf("handles (-nft +got):\n%s", diff)
	}
	must(t, d.Stop())
	must(t, conn.Close())
	again, _ := startKernel(t, ns, aggregator.Config{StateDir: state}, false)
	got, adopted := read(again)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("handles after a restart (-nft +got):\n%s", diff)
	}
	// The words are the publishers' and come back with them; the rest stays.
	for _, c := range table.GetChains() {
		c.GetChain().Priority, c.GetChain().Policy = "0", "accept"
		for _, r := range c.GetRules() {
			r.GetRule().Text = ""
		}
	}
	adopted.Revision = table.GetRevision()
	if diff := cmp.Diff(table, adopted, protocmp.Transform()); diff != "" {
		t.Fatalf("table after a restart (-want +got):\n%s", diff)
	}
}

// TestGetTableWhileCommitting reads under an unlimited rate and a load that
// never lets the writer rest.
func TestGetTableWhileCommitting(t *testing.T) {
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: &aggregatortest.Kernel{}, Rate: 1e9, Burst: 1e9}})
	ctx := aggregatortest.Context(t)
	stop, done := make(chan struct{}), make(chan error, 1)
	go func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
			if _, err := d.Aggregator.Apply(ctx, "a", blocklist("list", fmt.Sprintf("10.0.0.%d", i%250))); err != nil {
				done <- err
				return
			}
		}
	}()
	aggregatortest.Eventually(t, "the table is there", func() bool {
		_, err := d.Aggregator.GetTable(ctx, &weftv1.GetTableRequest{Family: "ip", Name: "demo"}, aggregator.Reader{All: true})
		return err == nil
	})
	for range 100 {
		got, err := getTable(ctx, d, "ip", "demo", false)
		must(t, err)
		if n := len(got.GetSets()[0].GetSet().GetElements()); n != 1 {
			t.Fatalf("a read between two commits sees %d elements: want 1", n)
		}
	}
	close(stop)
	must(t, <-done)
}

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

	"github.com/weft-proxy/weft/aggregator"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/aggregator/testing/nametest"
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

// readTable joins the parts of a table.
func readTable(ctx context.Context, t *testing.T, d *aggregatortest.Daemon, req *weftv1.GetTableRequest) *weftv1.GetTableResponse {
	t.Helper()
	parts, err := d.Aggregator.GetTable(ctx, req, aggregator.Reader{All: true})
	must(t, err)
	whole := &weftv1.GetTableResponse{}
	for part := range parts {
		whole.Join(part)
	}
	return whole
}

func TestGetTable(t *testing.T) {
	k, d := inMemory(t)
	ctx := aggregatortest.Context(t)
	for publisher, f := range map[string]*weftv1.Fragment{
		"late":  ports("p", 10, "80 : drop", "443 : accept"),
		"early": ports("p", -10, "22 : accept", "80 : accept"),
	} {
		applyAs(t, d, publisher, f)
	}
	got := readTable(ctx, t, d, &weftv1.GetTableRequest{Family: "ip", Name: "demo"})
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
	same(t, "table", got, want)
	terse := readTable(ctx, t, d, &weftv1.GetTableRequest{Family: "ip", Name: "demo", Terse: true})
	if len(terse.GetSets()[0].GetSet().GetElements()) != 0 || terse.GetStatus().GetElements() != 3 {
		t.Fatalf("terse table is %v: want no elements and their number", terse)
	}
	list, err := d.Aggregator.ListTables(ctx, aggregator.Reader{All: true})
	must(t, err)
	same(t, "tables", list.GetTables(), []*weftv1.TableStatus{want.GetStatus()})
}

var handleComment = regexp.MustCompile(`^(.*) # handle (\d+)$`)

// TestKernelGetTable compares with what nft lists, before a restart and after,
// when the kernel alone knows what is there.
func TestKernelGetTable(t *testing.T) {
	state := t.TempDir()
	ns, d, conn := onKernel(t, aggregator.Config{StateDir: state}, false)
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
		table = readTable(ctx, t, d, &weftv1.GetTableRequest{Family: "ip", Name: "demo"})
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
	same(t, "handles after a restart, as nft has them", got, want)
	// The words are the publishers' and come back with them; the rest stays.
	for _, c := range table.GetChains() {
		c.GetChain().Priority, c.GetChain().Policy = "0", "accept"
		for _, r := range c.GetRules() {
			r.GetRule().Text = ""
		}
	}
	adopted.Revision = table.GetRevision()
	same(t, "table after a restart", adopted, table)
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
		got := readTable(ctx, t, d, &weftv1.GetTableRequest{Family: "ip", Name: "demo"})
		same(t, "elements that a read between two commits sees", len(got.GetSets()[0].GetSet().GetElements()), 1)
	}
	close(stop)
	must(t, <-done)
}

func TestOwner(t *testing.T) {
	k, d := inMemory(t)
	applyAs(t, d, "b", ports("p", 5, "80 : accept", "443 : drop"))
	applyAs(t, d, "a", ports("p", 9, "80 : drop"))
	two := ruled("rules", "tcp dport 1 accept", "tcp dport 2 accept")
	two.Tables[0].Chains[0].Rules[1].Comment = "second"
	applyAs(t, d, "c", two)
	handles := k.Handles(demo, "input")
	all := func(text string) []*weftv1.ObjectOwner {
		return []*weftv1.ObjectOwner{
			{Fragment: &weftv1.FragmentName{Publisher: "c", Name: "rules"}, Text: text}, {Fragment: &weftv1.FragmentName{Publisher: "b", Name: "p"}, Priority: 5, Text: text}, {Fragment: &weftv1.FragmentName{Publisher: "a", Name: "p"}, Priority: 9, Text: text},
		}
	}
	for _, tt := range []struct {
		name string
		req  *weftv1.OwnerRequest
		want []*weftv1.ObjectOwner
	}{
		{"table", &weftv1.OwnerRequest{Object: nametest.Parse("table ip demo")}, all("table ip demo")},
		{"chain", &weftv1.OwnerRequest{Object: nametest.Parse("chain ip demo input")}, all("chain ip demo input { type filter hook input priority 0; policy accept; }")},
		{"rule", &weftv1.OwnerRequest{Object: nametest.Parse(fmt.Sprintf("rule ip demo input handle %d", handles[1]))}, []*weftv1.ObjectOwner{
			{Fragment: &weftv1.FragmentName{Publisher: "c", Name: "rules"}, Text: `tcp dport 2 accept comment "second"`, Index: 2},
		}},
		{"map", &weftv1.OwnerRequest{Object: nametest.Parse("map ip demo ports")}, []*weftv1.ObjectOwner{
			{Fragment: &weftv1.FragmentName{Publisher: "b", Name: "p"}, Priority: 5, Text: "map ip demo ports { type inet_service : verdict; }"},
			{Fragment: &weftv1.FragmentName{Publisher: "a", Name: "p"}, Priority: 9, Text: "map ip demo ports { type inet_service : verdict; }"},
		}},
		{"element", &weftv1.OwnerRequest{Object: nametest.Parse("element ip demo ports { 80 }")}, []*weftv1.ObjectOwner{
			{Fragment: &weftv1.FragmentName{Publisher: "b", Name: "p"}, Priority: 5, Text: "80 : accept"}, {Fragment: &weftv1.FragmentName{Publisher: "a", Name: "p"}, Priority: 9, Text: "80 : drop"},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := d.Aggregator.Owner(aggregatortest.Context(t), tt.req, aggregator.Reader{All: true})
			must(t, err)
			same(t, "owners", got.GetOwners(), tt.want)
		})
	}
	for name, tt := range map[string]struct {
		object string
		want   error
	}{
		"no table":     {"table ip none", aggregator.ErrNoObject},
		"no chain":     {"chain ip demo none", aggregator.ErrNoObject},
		"no rule":      {"rule ip demo input handle 999", aggregator.ErrNoObject},
		"no set":       {"element ip demo none { 80 }", aggregator.ErrNoObject},
		"no element":   {"element ip demo ports { 81 }", aggregator.ErrNoObject},
		"no kind":      {"carrot ip demo ports", aggregator.ErrNoObject},
		"bad key":      {"element ip demo ports { eighty }", aggregator.ErrInvalidName},
		"bad family":   {"table ipx demo", aggregator.ErrInvalidName},
		"nothing":      {"", aggregator.ErrProtocol},
		"lone handle":  {"rule ip demo", aggregator.ErrProtocol},
		"no handle":    {"rule ip demo input", aggregator.ErrProtocol},
		"lone element": {"element ip demo", aggregator.ErrProtocol},
		"named table":  {"table ip demo input", aggregator.ErrProtocol},
	} {
		req := &weftv1.OwnerRequest{Object: nametest.Parse(tt.object)}
		if _, err := d.Aggregator.Owner(aggregatortest.Context(t), req, aggregator.Reader{All: true}); !errors.Is(err, tt.want) {
			t.Errorf("%s: error is %v: want %v", name, err, tt.want)
		}
	}
}

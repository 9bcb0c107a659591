package client_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/aggregator"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/aggregator/testing/nametest"
)

// TestCallsThatInspect asks an aggregator for what was published.
func TestCallsThatInspect(t *testing.T) {
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: &aggregatortest.Kernel{}}})
	c, ctx := d.Dial(t, "demo"), aggregatortest.Context(t)
	f := newPublisher("10.0.0.1").fragment("list")
	plan, err := c.Plan(ctx, &weftv1.PlanRequest{Fragments: []*weftv1.Fragment{f}})
	if err != nil || len(plan.GetChanges()) != 3 || plan.GetChanges()[0].GetFragment().Text() != "demo/list" {
		t.Fatalf("plan is %v, error %v: want a table, a set and an element of demo/list", plan, err)
	}
	if _, err := c.Apply(ctx, f); err != nil {
		t.Fatal(err)
	}
	for _, publisher := range []string{"demo", "other"} {
		plan, err := d.Dial(t, publisher).Plan(ctx, &weftv1.PlanRequest{Fragments: []*weftv1.Fragment{f}})
		if err != nil || len(plan.GetChanges())+len(plan.GetRejections()) != 0 {
			t.Fatalf("the plan of %s for a share of what is there is %v, error %v", publisher, plan, err)
		}
	}
	if r, err := c.ListTables(ctx); err != nil || len(r.GetTables()) != 1 || r.GetTables()[0].GetElements() != 1 || r.GetRevision() == 0 {
		t.Errorf("tables are %v, error %v", r, err)
	}
	if r, err := c.GetTable(ctx, &weftv1.GetTableRequest{Family: "ip", Name: "demo"}); err != nil || r.GetSets()[0].GetSet().GetElements()[0].GetKey() != "10.0.0.1" {
		t.Errorf("table is %v, error %v", r, err)
	}
	if r, err := c.Owner(ctx, &weftv1.OwnerRequest{Object: nametest.Parse("element ip demo blocked { 10.0.0.1 }")}); err != nil || len(r.GetOwners()) != 1 || r.GetOwners()[0].GetFragment().GetPublisher() != "demo" {
		t.Errorf("owners are %v, error %v", r, err)
	}
	if r, err := c.ListPublishers(ctx); err != nil || len(r.GetPublishers()) != 1 || r.GetPublishers()[0].GetCommitted() != 1 {
		t.Errorf("publishers are %v, error %v", r, err)
	}
	if tables, err := c.Cleanup(ctx); err != nil || !slices.Equal(tables, []string{"ip demo"}) {
		t.Errorf("tables %v are removed, error %v", tables, err)
	}
}

// TestCallsThatFail has what is not there, calls that are given up, and an aggregator without the calls.
func TestCallsThatFail(t *testing.T) {
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: &aggregatortest.Kernel{}}})
	c, ctx := d.Dial(t, "demo"), aggregatortest.Context(t)
	gone, cancel := context.WithCancel(ctx)
	cancel()
	closed := d.Dial(t, "demo")
	_ = closed.Close()
	for _, tt := range []struct {
		c             *client.Client
		ctx           context.Context //nolint:containedctx // of a test's case
		family, table string
		want          error
		text          string
	}{
		{c, ctx, "ip", "none", client.ErrNotFound, "weft has no table ip none"},
		{c, ctx, "ipx", "none", client.ErrInvalid, `unknown family "ipx"`},
		{c, gone, "ip", "none", context.Canceled, ""},
		{closed, ctx, "ip", "none", client.ErrClosed, ""},
		{newFake(t).dial(t), ctx, "ip", "none", errors.ErrUnsupported, ""},
	} {
		_, stream := tt.c.GetTable(tt.ctx, &weftv1.GetTableRequest{Family: tt.family, Name: tt.table})
		_, unary := tt.c.Owner(tt.ctx, &weftv1.OwnerRequest{Object: &weftv1.ObjectName{Kind: "table", Family: tt.family, Table: tt.table}})
		for call, err := range map[string]error{"get table " + tt.family + " " + tt.table + ": ": stream, "find the owner of table " + tt.family: unary} {
			if !errors.Is(err, tt.want) || !strings.HasPrefix(err.Error(), call) || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("%s%v: want %v with %q", call, err, tt.want, tt.text)
			}
		}
	}
	if _, err := c.Owner(ctx, &weftv1.OwnerRequest{}); !errors.Is(err, client.ErrInvalid) || !strings.Contains(err.Error(), "the table has no name") {
		t.Errorf("the owner of nothing: %v", err)
	}
	plan, err := c.Plan(ctx, &weftv1.PlanRequest{Withdraw: []*weftv1.FragmentName{{Publisher: "No!", Name: "x"}}, Fragments: []*weftv1.Fragment{nil, {}, {Name: "x", Tables: []*weftv1.Table{nil}}}})
	if err != nil || len(plan.GetRejections()) != 4 {
		t.Errorf("the plan of nonsense is %v, error %v: want four rejections", plan, err)
	}
	if _, err = c.Plan(ctx, &weftv1.PlanRequest{Withdraw: make([]*weftv1.FragmentName, 1001)}); !errors.Is(err, client.ErrInvalid) || !strings.Contains(err.Error(), "at most 1000 are allowed") {
		t.Errorf("a plan of too many: %v", err)
	}
}

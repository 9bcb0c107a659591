package server_test

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/aggregator/testing/nametest"
)

// TestInspect asks over the socket what it is that was published over it.
func TestInspect(t *testing.T) {
	_, conn := start(t, &aggregatortest.Kernel{})
	api := newAPI(conn)
	ctx := metadata.AppendToOutgoingContext(aggregatortest.Context(t), "weft-publisher", "demo")

	plan, err := api.Plan(ctx, &weftv1.PlanRequest{Fragments: []*weftv1.Fragment{table()}})
	if err != nil || len(plan.GetChanges()) != 3 || plan.GetChanges()[0].GetFragment().Text() != "demo/list" {
		t.Fatalf("plan is %v, error %v: want a table, a set and an element of demo/list", plan, err)
	}
	if _, err := api.Apply(ctx, &weftv1.ApplyRequest{Fragment: table()}); err != nil {
		t.Fatal(err)
	}
	if plan, err = api.Plan(ctx, &weftv1.PlanRequest{Fragments: []*weftv1.Fragment{table()}}); err != nil || len(plan.GetChanges()) != 0 {
		t.Fatalf("the plan of what is there is %v, error %v", plan, err)
	}
	asOther := metadata.AppendToOutgoingContext(aggregatortest.Context(t), "weft-publisher", "other")
	other, err := api.Plan(asOther, &weftv1.PlanRequest{Fragments: []*weftv1.Fragment{table()}})
	if err != nil || len(other.GetChanges()) != 0 || len(other.GetRejections()) != 0 {
		t.Fatalf("the plan of another's share is %v, error %v: want no change in the kernel", other, err)
	}

	tables, err := api.ListTables(ctx, &weftv1.ListTablesRequest{})
	if err != nil || len(tables.GetTables()) != 1 || tables.GetTables()[0].GetElements() != 1 || tables.GetRevision() == 0 {
		t.Fatalf("tables are %v, error %v", tables, err)
	}
	got, err := api.GetTable(ctx, &weftv1.GetTableRequest{Family: "inet", Name: "demo"})
	if err != nil || got.GetSets()[0].GetSet().GetElements()[0].GetKey() != "10.0.0.1" {
		t.Fatalf("table is %v, error %v", got, err)
	}
	owner, err := api.Owner(ctx, &weftv1.OwnerRequest{Object: nametest.Parse("element inet demo blocked { 10.0.0.1 }")})
	if err != nil || len(owner.GetOwners()) != 1 || owner.GetOwners()[0].GetFragment().GetPublisher() != "demo" {
		t.Fatalf("owners are %v, error %v", owner, err)
	}
	publishers, err := api.ListPublishers(ctx, &weftv1.ListPublishersRequest{})
	if err != nil || len(publishers.GetPublishers()) != 1 || publishers.GetPublishers()[0].GetCommitted() != 1 {
		t.Fatalf("publishers are %v, error %v", publishers, err)
	}
}

func TestInspectErrors(t *testing.T) {
	_, conn := start(t, &aggregatortest.Kernel{})
	api := newAPI(conn)
	ctx := aggregatortest.Context(t)
	_, err := api.GetTable(ctx, &weftv1.GetTableRequest{Family: "ip", Name: "none"})
	wantCode(t, err, codes.NotFound, "weft has no table ip none")
	_, err = api.GetTable(ctx, &weftv1.GetTableRequest{Family: "ipx", Name: "none"})
	wantCode(t, err, codes.InvalidArgument, `unknown family "ipx"`)
	_, err = api.Owner(ctx, &weftv1.OwnerRequest{Object: nametest.Parse("table ip none")})
	wantCode(t, err, codes.NotFound, "weft has no table ip none")
	_, err = api.Owner(ctx, &weftv1.OwnerRequest{})
	wantCode(t, err, codes.InvalidArgument, "the table has no name")
	invalid, err := api.Plan(ctx, &weftv1.PlanRequest{Withdraw: []*weftv1.FragmentName{{Publisher: "No!", Name: "x"}}})
	if err != nil || len(invalid.GetRejections()) != 1 || !strings.Contains(invalid.GetRejections()[0].GetViolations()[0].GetMessage(), "invalid name") {
		t.Fatalf("the plan for an invalid publisher is %v, error %v: want a rejection", invalid, err)
	}
	_, err = api.Plan(ctx, &weftv1.PlanRequest{Withdraw: make([]*weftv1.FragmentName, 1001)})
	wantCode(t, err, codes.InvalidArgument, "at most 1000 are allowed")
	plan, err := api.Plan(ctx, &weftv1.PlanRequest{Fragments: []*weftv1.Fragment{nil, {}, {Name: "x", Tables: []*weftv1.Table{nil}}}})
	if err != nil || len(plan.GetRejections()) != 3 {
		t.Fatalf("the plan of nonsense is %v, error %v: want three rejections", plan, err)
	}
}

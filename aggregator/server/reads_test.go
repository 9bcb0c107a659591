package server_test

import (
	"testing"

	"google.golang.org/grpc/codes"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// TestRightToReadIsTaken watches while the right to read is given, and then not any more.
func TestRightToReadIsTaken(t *testing.T) {
	nfttest.Require(t, nfttest.Users)
	const one, two = "socketGroup: 4000\npublishers:\n- {name: one, match: {uid: 4001}}\n", "- {name: two, match: {uid: 4002}, read: true}\n"
	d := startConfigured(t, one+two)
	ctx := aggregatortest.Context(t)
	client := func(uid uint32) api {
		return newAPI(aggregatortest.DialAs(t, d.Socket, aggregatortest.User{UID: uid, GID: 5000, Groups: []uint32{4000}}))
	}
	writer, reader := client(4001), client(4002)
	watch, err := reader.Watch(ctx, &weftv1.WatchRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := watch.Header(); err != nil {
		t.Fatal(err)
	}
	apply := func(a api, table string) {
		t.Helper()
		if _, err := a.Apply(ctx, &weftv1.ApplyRequest{Fragment: fragment(table)}); err != nil {
			t.Fatal(err)
		}
	}
	next := func(want string) {
		t.Helper()
		e, err := watch.Recv()
		if err != nil || len(e.GetCommit().GetFragments()) != 1 || e.GetCommit().GetFragments()[0].GetPublisher() != want {
			t.Fatalf("event %v, error %v: want a commit of %s", e, err, want)
		}
	}
	get := &weftv1.GetFragmentRequest{Fragment: &weftv1.FragmentName{Publisher: "one", Name: "list"}}
	apply(writer, "one")
	next("one")
	if _, err := reader.Get(ctx, get); err != nil {
		t.Error(err)
	}
	d.reload(t, one+"- {name: two, match: {uid: 4002}}\n")
	if _, err := writer.Delete(ctx, &weftv1.DeleteRequest{Fragment: get.GetFragment()}); err != nil {
		t.Fatal(err)
	}
	apply(reader, "two")
	next("two")
	_, err = reader.Get(ctx, get)
	wantCode(t, err, codes.PermissionDenied, "publisher two may not read fragment one/list")
}

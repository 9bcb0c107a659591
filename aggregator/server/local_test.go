package server_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/weft-proxy/weft/aggregator"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/aggregator/server"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/nft"
)

// startLocal runs a daemon and connects to it within the process.
func startLocal(t *testing.T, k aggregator.Kernel, publisher string) (*aggregatortest.Daemon, *client.Client, *server.Local) {
	t.Helper()
	var local server.Local
	d := aggregatortest.Start(t, aggregatortest.Config{
		Config: aggregator.Config{Kernel: k, Version: "test"}, Limits: func(c *server.Config) { c.Local = &local },
	})
	c, err := client.Dial(aggregatortest.Context(t), client.Config{Socket: d.Socket, Publisher: publisher, Local: &local})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return d, c, &local
}

func TestLocalPublishes(t *testing.T) {
	k := &aggregatortest.Kernel{}
	_, c, local := startLocal(t, k, "own")
	ctx := aggregatortest.Context(t)
	s := c.Session(client.SessionConfig{})
	if _, err := s.Put(ctx, table()); err != nil {
		t.Fatal(err)
	}
	f := proto.CloneOf(table())
	f.Tables[0].Sets[0].Elements = append(f.Tables[0].Sets[0].Elements, &weftv1.Element{Key: "10.0.0.2"})
	if _, err := s.Put(ctx, f); err != nil {
		t.Fatal(err)
	}
	fragments, err := c.List(ctx)
	if err != nil || len(fragments.GetFragments()) != 1 || fragments.GetFragments()[0].GetFragment().GetPublisher() != "own" {
		t.Fatalf("fragments %v, error %v", fragments, err)
	}
	// An update that the aggregator refuses is answered, and the stream goes on.
	bad := proto.CloneOf(f)
	bad.Tables[0].Sets[0].Elements[0].Key = "10.0.0.1.2"
	if _, err := s.Put(ctx, bad); err == nil || !strings.Contains(err.Error(), "10.0.0.1.2") {
		t.Fatalf("error %v", err)
	} else if _, ok := errors.AsType[*client.RejectedError](err); !ok {
		t.Fatalf("error %v", err)
	}
	if _, err := s.Withdraw(ctx, "list"); err != nil {
		t.Fatal(err)
	}
	if !k.Empty() {
		t.Fatalf("the kernel has %v", k)
	}
	wantCode(t, local.Invoke(ctx, weftv1.Publisher_Apply_FullMethodName, nil, nil), codes.Unimplemented, "Apply")
	_, err = local.NewStream(ctx, nil, weftv1.Inspect_Watch_FullMethodName)
	wantCode(t, err, codes.Unimplemented, "Watch")
}

// TestLocalIsChecked: a stream within the process passes the checks of a stream of the socket.
func TestLocalIsChecked(t *testing.T) {
	_, c, _ := startLocal(t, &aggregatortest.Kernel{}, "Own")
	_, err := c.Session(client.SessionConfig{}).Put(aggregatortest.Context(t), table())
	if !errors.Is(err, client.ErrInvalid) || !strings.Contains(err.Error(), "publisher name") {
		t.Fatalf("error %v", err)
	}
}

// TestLocalSendsParts: a snapshot that needs several messages arrives whole.
func TestLocalSendsParts(t *testing.T) {
	k := &aggregatortest.Kernel{}
	_, c, _ := startLocal(t, k, "own")
	f := table()
	set := f.Tables[0].Sets[0]
	for i := range 20_000 {
		set.Elements = append(set.Elements, &weftv1.Element{Key: netip.AddrFrom4([4]byte{11, byte(i >> 16), byte(i >> 8), byte(i)}).String()})
	}
	if _, err := c.Session(client.SessionConfig{}).Put(aggregatortest.Context(t), f); err != nil {
		t.Fatal(err)
	}
	if got := k.Elements(nft.TableID{Family: nft.FamilyInet, Name: "demo"}, "blocked"); len(got) != len(set.Elements) {
		t.Fatalf("the kernel has %d elements: want %d", len(got), len(set.Elements))
	}
}

// TestLocalEnds: the sessions of a client end with it, and those of an aggregator that stops wait.
func TestLocalEnds(t *testing.T) {
	d, c, _ := startLocal(t, &aggregatortest.Kernel{}, "own")
	ctx := aggregatortest.Context(t)
	lost := make(chan error, 16)
	s := c.Session(client.SessionConfig{OnStream: func(err error) { lost <- err }})
	if _, err := s.Put(ctx, table()); err != nil {
		t.Fatal(err)
	}
	if err := <-lost; err != nil {
		t.Fatal(err)
	}
	if err := d.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := <-lost; !errors.Is(err, client.ErrUnavailable) {
		t.Fatalf("error %v", err)
	}
	pending := s.StartWithdraw("list")
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := pending.Wait(ctx); !errors.Is(err, client.ErrClosed) {
		t.Fatalf("error %v", err)
	}
}

package attack

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
)

// Attacks on the memory and the connections of the daemon, before it knows what a request
// wants.

// encoded is a request that is encoded already.
type encoded struct{}

func (encoded) Marshal(v any) ([]byte, error)   { return v.([]byte), nil }
func (encoded) Unmarshal(_ []byte, _ any) error { return nil }
func (encoded) Name() string                    { return "proto" }

// emptyTables is a request to apply a fragment with n tables of two bytes each.
func emptyTables(n int) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), bytes.Repeat([]byte{0x22, 0}, n))
}

// prefix is what precedes a message of n bytes.
func prefix(n int) []byte { return binary.BigEndian.AppendUint32([]byte{0}, uint32(n)) } //nolint:gosec // small

// TestEmptyTables sends 14 MiB of empty tables, as a stranger and as a publisher.
func TestEmptyTables(t *testing.T) {
	for user, want := range map[uint32]codes.Code{uidStranger: codes.PermissionDenied, uidCNI: codes.ResourceExhausted, uidBig: codes.ResourceExhausted} {
		attack(t, options{}, func(h *host) {
			req := emptyTables(7 << 20)
			err := h.as(user).Invoke(aggregatortest.Context(h.T), weftv1.Publisher_Apply_FullMethodName, req, &weftv1.ApplyResponse{}, grpc.ForceCodec(encoded{}))
			h.observe("uid %d applies 7,340,032 empty tables: %v", user, status.Code(err))
			if status.Code(err) != want {
				h.Errorf("error %v: want %v", err, want)
			}
		})
	}
}

// TestUnfinishedCalls sends all but the end of 64 calls of 16 MiB each.
func TestUnfinishedCalls(t *testing.T) {
	for user, publisher := range map[uint32]string{uidStranger: "", uidCNI: "cni"} {
		attack(t, options{}, func(h *host) {
			sent, closed := 0, 0
			for range 8 {
				r := h.raw(user)
				r.Publisher = publisher
				go r.Read(nil)
				n, gone := leaveUnfinished(r, 8)
				sent += n
				if gone {
					closed++
				}
			}
			h.observe("uid %d leaves calls unfinished: %d MiB are taken, and %d of 8 connections closed", user, sent>>20, closed)
		})
	}
}

// leaveUnfinished begins calls and sends what the server takes of them, but never the end. It
// returns the bytes sent, and whether the connection has been closed.
func leaveUnfinished(r *aggregatortest.Raw, calls int) (sent int, gone bool) {
	const size, chunk = 16 << 20, 16 << 10
	left := make(map[uint32]int)
	for range calls {
		id := r.Open(weftv1.Publisher_Apply_FullMethodName)
		if ok, err := r.SendWithin(id, prefix(size-5)); err != nil || !ok {
			return sent, true
		}
		left[id] = size - 5 - chunk
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for idle := 0; idle < 50; {
		progress := false
		for id, n := range left {
			if n < chunk {
				continue
			}
			ok, err := r.SendWithin(id, make([]byte, chunk))
			if err != nil {
				return sent, true
			}
			if ok {
				progress = true
				sent += chunk
				left[id] -= chunk
			}
		}
		if !progress {
			idle++
			<-tick.C
		}
	}
	return sent, r.Gone()
}

// TestIdleConnections opens more idle connections than the daemon has descriptors.
func TestIdleConnections(t *testing.T) {
	attack(t, options{nofile: 400}, func(h *host) {
		for _, user := range []uint32{uidStranger, uidCNI, uidBig} {
			for range 200 {
				c, err := aggregatortest.ConnectAs(h.socket, aggregatortest.User{UID: user, GID: group})
				if err != nil {
					break
				}
				h.Cleanup(func() { _ = c.Close() })
			}
		}
		began := time.Now()
		_, err := weftv1.NewInspectClient(h.as(0)).GetInfo(aggregatortest.Context(h.T), &weftv1.GetInfoRequest{})
		h.observe("600 idle connections of three users: root is answered after %v", time.Since(began).Round(time.Millisecond))
		if err != nil {
			h.Errorf("root: %v", err)
		}
	})
}

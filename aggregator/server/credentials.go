package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/weft-proxy/weft/aggregator"
	"github.com/weft-proxy/weft/aggregator/access"
	"github.com/weft-proxy/weft/aggregator/admission"
	"github.com/weft-proxy/weft/aggregator/turns"
)

// PublisherKey is the metadata key for the publisher's name, with one value. Without it, package
// access chooses the publisher.
const PublisherKey = "weft-publisher"

var errAnonymous = errors.New("peer has no credentials")

// peerCredentials identify the peer by the kernel. The connection is not encrypted, because a Unix
// socket does not leave the machine.
type peerCredentials struct {
	// for the clients' methods, never called
	credentials.TransportCredentials
	access    *access.Control
	receiving *budget
}

// AuthInfo is the credentials.AuthInfo of a connection.
type AuthInfo struct {
	credentials.CommonAuthInfo
	access.Peer
	conn net.Conn
	// the error of all calls, if they are refused
	refusal error
}

// AuthType implements credentials.AuthInfo.
func (AuthInfo) AuthType() string { return "peercred" }

// ServerHandshake refuses a peer without a publisher before the peer sends data. The connection
// must come from a limitedListener.
func (p peerCredentials) ServerHandshake(c net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, ok := c.(*limitedConn)
	if !ok {
		return nil, nil, errAnonymous
	}
	info := AuthInfo{
		CommonAuthInfo: credentials.CommonAuthInfo{SecurityLevel: credentials.PrivacyAndIntegrity},
		Peer:           identify(c, conn.peer),
		conn:           c,
	}
	defer conn.identified()
	id, err := p.access.Resolve(&info.Peer, "")
	if err == nil {
		err = conn.limits.admit(conn, id.System)
	}
	if err != nil {
		info.refusal = err
		if !conn.limits.refuse(conn, err) {
			return nil, nil, errors.Join(err, c.Close())
		}
		return c, info, nil
	}
	info.conn = newCountedConn(conn, p.receiving, id.Publisher, id.System)
	return info.conn, info, nil
}

func (p peerCredentials) Clone() credentials.TransportCredentials { return p }

type caller struct {
	access.Peer
	access.Identity
	conn    net.Conn
	access  *access.Control
	request *request
	unread  *unread
	// nil without turns
	turn *turns.Turn
}

// authorize returns the known part of the caller even with an error.
func (i *interceptor) authorize(ctx context.Context) (caller, error) {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return caller{}, errAnonymous
	}
	info, ok := p.AuthInfo.(AuthInfo)
	if !ok {
		return caller{}, errAnonymous
	}
	c := caller{Peer: info.Peer, conn: info.conn, access: i.access}
	if info.refusal != nil {
		return c, info.refusal
	}
	want := ""
	switch names := metadata.ValueFromIncomingContext(ctx, PublisherKey); len(names) {
	case 0:
	case 1:
		want = names[0]
		if err := admission.CheckIdentity("publisher", want); err != nil {
			return c, err
		}
	default:
		return c, fmt.Errorf("%w: metadata %s is given %d times", aggregator.ErrInvalidName, PublisherKey, len(names))
	}
	var err error
	c.Identity, err = i.access.Resolve(&c.Peer, want)
	return c, err
}

type callerKey struct{}

func withCaller(ctx context.Context, c caller) context.Context {
	return aggregator.WithAlive(context.WithValue(ctx, callerKey{}, c), c.connected)
}

func callerFrom(ctx context.Context) caller {
	return ctx.Value(callerKey{}).(caller) //nolint:forcetypeassert // interceptor.call sees every call
}

// connected reports whether the caller's end of the connection is open, which the call's context
// reports only after gRPC has read all data. The kernel closes a process's sockets before its
// parent can learn of its death. So connected is false before a replacement process connects.
func (c caller) connected() bool {
	_, ok := c.conn.(syscall.Conn)
	return !ok || !closedByPeer(c.conn)
}

package server

import (
	"context"
	"errors"
	"fmt"
	"net"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/weft-proxy/weft/aggregator"
	"github.com/weft-proxy/weft/aggregator/access"
	"github.com/weft-proxy/weft/aggregator/admission"
)

// PublisherKey is the metadata in which a caller names the publisher.
const PublisherKey = "weft-publisher"

// errAnonymous is a connection without credentials.
var errAnonymous = errors.New("peer has no credentials")

// peerCredentials are transport credentials that know the peer from the
// kernel. Nothing is encrypted: a Unix socket does not leave the machine.
type peerCredentials struct{}

// AuthInfo is the identity of a connection's peer.
type AuthInfo struct {
	credentials.CommonAuthInfo
	Peer
	conn net.Conn
	// process is what else is known of the peer.
	process access.Peer
	// refusal is what calls are answered with, if they are refused.
	refusal error
}

// AuthType implements credentials.AuthInfo.
func (AuthInfo) AuthType() string { return "peercred" }

// ServerHandshake implements credentials.TransportCredentials.
func (peerCredentials) ServerHandshake(c net.Conn) (net.Conn, credentials.AuthInfo, error) {
	p, err := peerOf(c)
	if err != nil {
		return nil, nil, err
	}
	return c, AuthInfo{
		CommonAuthInfo: credentials.CommonAuthInfo{SecurityLevel: credentials.PrivacyAndIntegrity},
		Peer:           p,
		conn:           c,
		process:        identify(c, p),
		refusal:        refusalOf(c),
	}, nil
}

// ClientHandshake implements credentials.TransportCredentials.
func (peerCredentials) ClientHandshake(context.Context, string, net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("peer credentials are for servers")
}

// Info implements credentials.TransportCredentials.
func (peerCredentials) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "peercred"}
}

// Clone implements credentials.TransportCredentials.
func (c peerCredentials) Clone() credentials.TransportCredentials { return c }

// OverrideServerName implements credentials.TransportCredentials.
func (peerCredentials) OverrideServerName(string) error { return nil }

// caller is who makes a call.
type caller struct {
	Peer
	publisher string
	conn      net.Conn
	process   access.Peer
	// admin allows to act on the fragments of others.
	admin bool
	// access counts what the caller is refused.
	access *access.Control
}

// authorizer decides who may call.
type authorizer struct{ access *access.Control }

// authorize identifies the caller from the connection and the metadata. On an
// error the caller has what is known of it.
func (a *authorizer) authorize(ctx context.Context) (caller, error) {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return caller{}, errAnonymous
	}
	info, ok := p.AuthInfo.(AuthInfo)
	if !ok {
		return caller{}, errAnonymous
	}
	if info.refusal != nil {
		return caller{}, info.refusal
	}
	c := caller{Peer: info.Peer, conn: info.conn, process: info.process, access: a.access}
	c.process.PID, c.process.UID, c.process.GID = info.PID, info.UID, info.GID
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
	id, err := a.access.Resolve(&c.process, want)
	c.publisher, c.admin = id.Publisher, id.Admin
	return c, err
}

// callerKey is the context key of the caller.
type callerKey struct{}

func withCaller(ctx context.Context, c caller) context.Context {
	return aggregator.WithAlive(context.WithValue(ctx, callerKey{}, c), c.connected)
}

// callerFrom returns the caller that an interceptor put into the context.
func callerFrom(ctx context.Context) (caller, error) {
	c, ok := ctx.Value(callerKey{}).(caller)
	if !ok {
		return caller{}, errAnonymous
	}
	return c, nil
}

package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/weft-proxy/weft/aggregator"
)

// PublisherKey is the metadata in which a caller names the publisher.
const PublisherKey = "weft-publisher"

// errDenied is a refusal of the caller, errAnonymous a connection without
// credentials.
var (
	errDenied    = errors.New("permission denied")
	errAnonymous = errors.New("peer has no credentials")
)

// peerCredentials are transport credentials that know the peer from the
// kernel. Nothing is encrypted: a Unix socket does not leave the machine.
type peerCredentials struct{}

// AuthInfo is the identity of a connection's peer.
type AuthInfo struct {
	credentials.CommonAuthInfo
	Peer
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
}

// authorizer decides who may call.
type authorizer struct {
	uid uint32
	log *slog.Logger
}

// authorize identifies the caller from the connection and the metadata.
func (a *authorizer) authorize(ctx context.Context, method string) (caller, error) {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return caller{}, errAnonymous
	}
	info, ok := p.AuthInfo.(AuthInfo)
	if !ok {
		return caller{}, errAnonymous
	}
	c := caller{Peer: info.Peer, publisher: fmt.Sprintf("uid-%d", info.UID)}
	if info.UID != 0 && info.UID != a.uid {
		a.log.Warn("refused a caller", "method", method, "pid", info.PID, "uid", info.UID, "gid", info.GID)
		return caller{}, fmt.Errorf("%w: uid %d may not call the aggregator: only root and uid %d may", errDenied, info.UID, a.uid)
	}
	names := metadata.ValueFromIncomingContext(ctx, PublisherKey)
	switch len(names) {
	case 0:
	case 1:
		c.publisher = names[0]
	default:
		return caller{}, fmt.Errorf("%w: metadata %s is given %d times", aggregator.ErrInvalidName, PublisherKey, len(names))
	}
	if err := aggregator.CheckIdentity("publisher", c.publisher); err != nil {
		return caller{}, err
	}
	return c, nil
}

// foreign decides on a call about another publisher's fragments.
func (c caller) foreign(publisher string, uid uint32) error {
	if publisher == c.publisher || c.UID == 0 || c.UID == uid {
		return nil
	}
	return fmt.Errorf("%w: publisher %s may not touch fragments of %s", errDenied, c.publisher, publisher)
}

// callerKey is the context key of the caller.
type callerKey struct{}

func withCaller(ctx context.Context, c caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// callerFrom returns the caller that an interceptor put into the context.
func callerFrom(ctx context.Context) (caller, error) {
	c, ok := ctx.Value(callerKey{}).(caller)
	if !ok {
		return caller{}, errAnonymous
	}
	return c, nil
}

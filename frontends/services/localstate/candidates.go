package localstate

import (
	"context"
	"net/netip"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/frontends/services/model/modelpb"
)

// ListCandidates implements modelpb.LocalStateServer.
func (s *Server) ListCandidates(req *modelpb.ListCandidatesRequest, to grpc.ServerStreamingServer[modelpb.ListCandidatesResponse]) error {
	select {
	case <-s.known:
	default:
		return errUnknown
	}
	key := model.Key{Namespace: req.GetNamespace(), Name: req.GetName()}
	all, ok := s.source.Candidates(key)
	if !ok {
		return status.Errorf(codes.NotFound, "Service %s does not exist", key)
	}
	for part := range slices.Chunk(all, maxEndpoints) {
		out := &modelpb.ListCandidatesResponse{Candidates: make([]*modelpb.Candidate, len(part))}
		for i := range part {
			out.Candidates[i] = part[i].Proto()
		}
		if err := to.Send(out); err != nil {
			return err
		}
	}
	return nil
}

// FindService implements modelpb.LocalStateServer.
func (s *Server) FindService(_ context.Context, req *modelpb.FindServiceRequest) (*modelpb.FindServiceResponse, error) {
	select {
	case <-s.known:
	default:
		return nil, errUnknown
	}
	var addr netip.Addr
	if b := req.GetAddress(); len(b) > 0 {
		var ok bool
		if addr, ok = netip.AddrFromSlice(b); !ok {
			return nil, status.Errorf(codes.InvalidArgument, "the address has %d bytes: want 4 or 16, or none for a NodePort", len(b))
		}
	}
	if req.GetPort() > 65535 || req.GetProtocol() > 255 {
		return nil, status.Errorf(codes.InvalidArgument, "port %d or protocol %d is out of range", req.GetPort(), req.GetProtocol())
	}
	key, name, ok := s.source.Find(addr.Unmap(), model.Protocol(req.GetProtocol()), uint16(req.GetPort()))
	if !ok {
		return nil, status.Error(codes.NotFound, "no Service has this address and port")
	}
	return &modelpb.FindServiceResponse{Service: &modelpb.ServiceName{Namespace: key.Namespace, Name: key.Name}, PortName: name}, nil
}

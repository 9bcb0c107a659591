package localstate

import (
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

package server

import (
	"context"
	"iter"
	"log/slog"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/weft-proxy/weft/aggregator"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
)

type service struct {
	weftv1.UnimplementedPublisherServer
	weftv1.UnimplementedInspectServer
	weftv1.UnimplementedFlowsServer
	weftv1.UnimplementedHistoryServer
	weftv1.UnimplementedTablesServer
	weftv1.UnimplementedAdminServer
	agg     *aggregator.Aggregator
	pacer   *pacer
	reads   *reads
	flows   FlowTable
	tables  *servedTables
	log     *slog.Logger
	partial *partialSnapshots
}

func (s *service) Apply(ctx context.Context, req *weftv1.ApplyRequest) (*weftv1.ApplyResponse, error) {
	c := callerFrom(ctx)
	if after := req.GetConfirm().AsDuration(); after != 0 {
		r, at, err := s.agg.ApplyUnconfirmed(ctx, c.publisher, req.GetFragment(), after)
		if err != nil {
			return nil, err
		}
		return &weftv1.ApplyResponse{Revision: r.Revision, Changes: r.Changes, RevertTime: timestamppb.New(at)}, nil
	}
	r, err := s.agg.Apply(ctx, c.publisher, req.GetFragment())
	if err != nil {
		return nil, err
	}
	return &weftv1.ApplyResponse{Revision: r.Revision, Changes: r.Changes}, nil
}

func (s *service) Confirm(ctx context.Context, req *weftv1.ConfirmRequest) (*weftv1.ConfirmResponse, error) {
	key, err := keyOf(ctx, req.GetFragment())
	if err != nil {
		return nil, err
	}
	revision, err := s.agg.Confirm(ctx, key.Publisher, key.Name, req.GetRevert())
	if err != nil {
		return nil, err
	}
	return &weftv1.ConfirmResponse{Revision: revision}, nil
}

func (s *service) Delete(ctx context.Context, req *weftv1.DeleteRequest) (*weftv1.DeleteResponse, error) {
	key, err := keyOf(ctx, req.GetFragment())
	if err != nil {
		return nil, err
	}
	r, err := s.agg.Delete(ctx, key.Publisher, key.Name)
	if err != nil {
		return nil, err
	}
	return &weftv1.DeleteResponse{Revision: r.Revision}, nil
}

func (s *service) Plan(req *weftv1.PlanRequest, stream grpc.ServerStreamingServer[weftv1.PlanResponse]) error {
	ctx := stream.Context()
	c := callerFrom(ctx)
	for _, n := range req.GetWithdraw() {
		if _, err := keyOf(ctx, n); err != nil {
			return err
		}
	}
	if err := s.pacer.wait(ctx, c.publisher, patience); err != nil {
		return err
	}
	return s.reads.call(ctx, func(r *read, c caller) error {
		var plan iter.Seq[*weftv1.PlanResponse]
		err := c.inTurn(ctx, func() (err error) {
			plan, err = s.agg.Plan(ctx, c.publisher, req)
			return err
		})
		if err != nil {
			return err
		}
		return sendAll(r, plan, stream.Send)
	})
}

// keyOf returns the fragment named in a request, of the caller by default.
func keyOf(ctx context.Context, n *weftv1.FragmentName) (desired.Key, error) {
	c := callerFrom(ctx)
	if n.GetPublisher() == "" {
		return desired.Key{Publisher: c.publisher, Name: n.GetName()}, nil
	}
	return desired.Key{Publisher: n.GetPublisher(), Name: n.GetName()}, c.foreign(n.GetPublisher())
}

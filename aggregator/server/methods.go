package server

import (
	"cmp"
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
	partial *budget
}

func (s *service) Apply(ctx context.Context, req *weftv1.ApplyRequest) (*weftv1.ApplyResponse, error) {
	publisher := callerFrom(ctx).Publisher
	if err := s.pacer.wait(ctx, publisher, patience); err != nil {
		return nil, err
	}
	if after := req.GetConfirm().AsDuration(); after != 0 {
		r, at, err := s.agg.ApplyUnconfirmed(ctx, publisher, req.GetFragment(), after)
		return &weftv1.ApplyResponse{Revision: r.Revision, Changes: r.Changes, RevertTime: timestamppb.New(at)}, err
	}
	r, err := s.agg.Apply(ctx, publisher, req.GetFragment())
	return &weftv1.ApplyResponse{Revision: r.Revision, Changes: r.Changes}, err
}

func (s *service) Confirm(ctx context.Context, req *weftv1.ConfirmRequest) (*weftv1.ConfirmResponse, error) {
	key, err := keyOf(ctx, req.GetFragment())
	if err != nil {
		return nil, err
	}
	revision, err := s.agg.Confirm(ctx, key.Publisher, key.Name, req.GetRevert())
	return &weftv1.ConfirmResponse{Revision: revision}, err
}

func (s *service) Delete(ctx context.Context, req *weftv1.DeleteRequest) (*weftv1.DeleteResponse, error) {
	if err := s.pacer.wait(ctx, callerFrom(ctx).Publisher, patience); err != nil {
		return nil, err
	}
	key, err := keyOf(ctx, req.GetFragment())
	if err != nil {
		return nil, err
	}
	r, err := s.agg.Delete(ctx, key.Publisher, key.Name)
	return &weftv1.DeleteResponse{Revision: r.Revision}, err
}

func (s *service) Plan(req *weftv1.PlanRequest, stream grpc.ServerStreamingServer[weftv1.PlanResponse]) error {
	ctx := stream.Context()
	c := callerFrom(ctx)
	for _, n := range req.GetWithdraw() {
		if _, err := keyOf(ctx, n); err != nil {
			return err
		}
	}
	if err := s.pacer.wait(ctx, c.Publisher, patience); err != nil {
		return err
	}
	return s.reads.call(ctx, func(r *read, c caller) error {
		plan, err := inTurn(ctx, c, func() (iter.Seq[*weftv1.PlanResponse], error) { return s.agg.Plan(ctx, c.Publisher, req) })
		if err != nil {
			return err
		}
		return sendAll(r, plan, stream.Send)
	})
}

// keyOf returns the fragment named in a request, of the caller by default.
func keyOf(ctx context.Context, n *weftv1.FragmentName) (desired.Key, error) {
	c := callerFrom(ctx)
	publisher := cmp.Or(n.GetPublisher(), c.Publisher)
	return desired.Key{Publisher: publisher, Name: n.GetName()}, c.foreign(publisher)
}

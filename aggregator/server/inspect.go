package server

import (
	"context"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// ListTables returns the tables that weft has in the kernel.
func (s *service) ListTables(ctx context.Context, _ *weftv1.ListTablesRequest) (*weftv1.ListTablesResponse, error) {
	return s.agg.ListTables(ctx)
}

// GetTable returns the merged content of one table.
func (s *service) GetTable(ctx context.Context, req *weftv1.GetTableRequest) (*weftv1.GetTableResponse, error) {
	return s.agg.GetTable(ctx, req.GetFamily(), req.GetName(), req.GetTerse())
}

// Plan says what a commit of some fragments would change.
func (s *service) Plan(ctx context.Context, req *weftv1.PlanRequest) (*weftv1.PlanResponse, error) {
	publisher, err := s.publisher(ctx, req.GetPublisher())
	if err != nil {
		return nil, err
	}
	return s.agg.Plan(ctx, publisher, req)
}

// ListPublishers returns who has fragments, or is connected.
func (s *service) ListPublishers(ctx context.Context, _ *weftv1.ListPublishersRequest) (*weftv1.ListPublishersResponse, error) {
	return s.agg.ListPublishers(ctx)
}

// Owner says which fragments an object of the kernel comes from.
func (s *service) Owner(ctx context.Context, req *weftv1.OwnerRequest) (*weftv1.OwnerResponse, error) {
	return s.agg.Owner(ctx, req)
}

package server

import (
	"context"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

func (s *service) Cleanup(ctx context.Context, _ *weftv1.CleanupRequest) (*weftv1.CleanupResponse, error) {
	c := callerFrom(ctx)
	if err := c.administrator("remove all tables"); err != nil {
		return nil, err
	}
	s.log.Info("cleanup is asked for", "pid", c.PID, "uid", c.UID)
	tables, err := s.agg.Cleanup(ctx)
	if err != nil {
		return nil, err
	}
	resp := &weftv1.CleanupResponse{}
	for _, t := range tables {
		resp.Tables = append(resp.Tables, &weftv1.ObjectName{Kind: "table", Family: t.Family.String(), Table: t.Name})
	}
	return resp, nil
}

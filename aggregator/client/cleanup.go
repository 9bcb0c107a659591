package client

import (
	"context"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// Cleanup removes all tables of weft from the kernel, ends the aggregator, and returns the tables,
// as "ip weft". Durable fragments stay stored.
//
// Possible errors: the errors of ListTables.
func (c *Client) Cleanup(ctx context.Context) (tables []string, err error) {
	resp, err := call(ctx, c, "clean up", "", c.admin.Cleanup, &weftv1.CleanupRequest{})
	for _, t := range resp.GetTables() {
		tables = append(tables, t.GetFamily()+" "+t.GetTable())
	}
	return tables, err
}

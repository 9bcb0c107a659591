package cli_test

import (
	"errors"
	"fmt"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/cmd/weft/cli"
)

func TestDescribe(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want string
	}{
		{errors.New("plain"), "plain"},
		{status.Error(codes.NotFound, "no Service a/b"), "no Service a/b"},
		{fmt.Errorf("read services: %w", status.Error(codes.NotFound, "no Service a/b")), "read services: no Service a/b"},
		{fmt.Errorf("watch: %w", status.Error(codes.Internal, "broken")), "watch: internal error: broken"},
		{fmt.Errorf("watch: %w", status.Error(codes.DeadlineExceeded, "")), "watch: error DeadlineExceeded"},
		{fmt.Errorf("apply: %w", &client.RejectedError{Fragment: "a", Violations: []*weftv1.Violation{{Message: "x", Line: 2, Column: 3, Excerpt: "abc\n  ^"}}}), (&client.RejectedError{Fragment: "a", Violations: []*weftv1.Violation{{Message: "x", Line: 2, Column: 3, Excerpt: "abc\n  ^"}}}).Detail()},
	} {
		if got := cli.Describe(tt.err); got != tt.want {
			t.Errorf("%v is %q, want %q", tt.err, got, tt.want)
		}
	}
}

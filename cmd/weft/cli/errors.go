package cli

import (
	"errors"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weft-proxy/weft/aggregator/client"
)

// Describe returns the text of an error for people. For a rejection that is every violation,
// with the line of text it is in. For a gRPC status it is the message without
// "rpc error: code = ...".
func Describe(err error) string {
	var rejected *client.RejectedError
	if errors.As(err, &rejected) {
		return rejected.Detail()
	}
	text := err.Error()
	var rpc interface{ GRPCStatus() *status.Status }
	if errors.As(err, &rpc) {
		st := rpc.GRPCStatus()
		text = strings.Replace(text, st.String(), statusText(st), 1)
	}
	return text
}

// statusText returns the message of a status. One that is a fault of the other side says so.
func statusText(st *status.Status) string {
	switch {
	case st.Message() == "":
		return "error " + st.Code().String()
	case st.Code() == codes.Internal || st.Code() == codes.Unknown:
		return "internal error: " + st.Message()
	default:
		return st.Message()
	}
}

package publish

import (
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/weft-proxy/weft/frontends/publish/outcomepb"
)

// Proto returns the message of an outcome.
func (o *Outcome) Proto() *outcomepb.Outcome {
	out := &outcomepb.Outcome{State: outcomepb.State(o.State) + outcomepb.State_STATE_WANTED, Revision: o.Revision}
	if o.Reason != nil {
		out.Reason = o.Reason.Error()
	}
	out.Since, out.Retry = timestamp(o.Since), timestamp(o.Retry)
	return out
}

func timestamp(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

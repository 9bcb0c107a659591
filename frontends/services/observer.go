package services

import (
	"time"

	"github.com/weft-proxy/weft/frontends/publish"
	"github.com/weft-proxy/weft/frontends/services/model"
)

const (
	warning = "Warning"
	// for rejected Services
	reasonRefused = "ServiceRefused"
	// for unrenderable Services
	reasonTooLarge = "ServiceTooLarge"
)

// observer reports kernel state, which changes only with a commit.
type observer struct {
	*Frontend
	noLocal *noLocalEndpoints
}

func (o *observer) Sent(s publish.Sent) {
	o.metrics.Sent(&s)
	if !s.Cleanup {
		o.metrics.proxy.updated(s.Snapshot, s.Total, o.cfg.Now(), s.Err)
	} else if s.Err != nil {
		o.metrics.proxy.cleanupFailed()
	}
}

func (o *observer) Committed(items []change) {
	node := o.content.committing
	if len(items) == 0 && node == nil {
		return
	}
	o.content.committing = nil
	changes := modelChanges(items)
	o.servers.Apply(changes, node)
	o.loopback.Apply(changes)
	o.noLocal.apply(changes)
	if o.noLocal.sum != o.metrics.proxy.shown {
		o.metrics.proxy.noLocal(&o.noLocal.sum)
	}
	o.local.OutcomesChanged()
}

func (o *observer) Refused(keys []model.Key) {
	o.local.OutcomesChanged()
	for _, key := range keys {
		switch outcome := o.publisher.Outcome(key); outcome.State {
		case publish.Refused:
			o.cfg.Events.Service(key, warning, reasonRefused, "its rules are rejected, so it does not work on node "+o.cfg.NodeName+": "+outcome.Reason.Error())
		case publish.LeftOut:
			o.cfg.Events.Service(key, warning, reasonTooLarge, "it does not work on node "+o.cfg.NodeName+": "+outcome.Reason.Error())
		default:
		}
	}
}

func (o *observer) Answered(since, committed time.Time) {
	if !committed.IsZero() {
		o.metrics.Latency.Observe(committed.Sub(since).Seconds())
		o.metrics.proxy.programmed(o.content.triggers, committed)
	}
	o.content.triggers = nil
	o.health.Updated()
}
